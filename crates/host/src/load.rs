//! How busy the machine is: load averages. Blames nobody.

use std::path::Path;

use crate::{files, system};

/// Tasks running or waiting to, averaged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadAverage {
    /// Over one minute.
    pub one_min: f64,
    /// Over five minutes.
    pub five_min: f64,
    /// Over fifteen minutes.
    pub fifteen_min: f64,
}

/// Now; on Linux from `/proc/loadavg` below `root`.
pub fn average(root: &Path) -> Option<LoadAverage> {
    if let Some(average) = system::load_average() {
        return Some(average);
    }
    let text = files::text(root, "proc/loadavg")?;
    let mut numbers = text.split_ascii_whitespace().map_while(|word| word.parse().ok());
    Some(LoadAverage {
        one_min: numbers.next()?,
        five_min: numbers.next()?,
        fifteen_min: numbers.next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::Tree;

    #[test]
    fn averages_of_the_kernel() {
        let tree = Tree::new(&[("proc/loadavg", "0.10 0.85 1.49 1/93 10498\n")]);
        let expected = LoadAverage { one_min: 0.1, five_min: 0.85, fifteen_min: 1.49 };
        assert_eq!(average(tree.root()), Some(expected));
        assert_eq!(average(Tree::new(&[("proc/loadavg", "x\n")]).root()), None);
    }
}
