//! How busy the machine is: load averages. Blames nobody.

use std::path::Path;

use crate::{files, system};

/// Tasks running or waiting to, averaged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadAverage {
    pub one_min: f64,
    pub five_min: f64,
    pub fifteen_min: f64,
}

/// Now; on Linux from `/proc/loadavg` below `root`.
pub fn average(root: &Path) -> Option<LoadAverage> {
    let [one_min, five_min, fifteen_min] = match system::load_average() {
        Some(average) => average,
        None => average_of(&files::text(root, "proc/loadavg")?)?,
    };
    Some(LoadAverage { one_min, five_min, fifteen_min })
}

/// The first three numbers of `/proc/loadavg`.
fn average_of(text: &str) -> Option<[f64; 3]> {
    let numbers = text.split_ascii_whitespace().map_while(|word| word.parse().ok());
    numbers.take(3).collect::<Vec<f64>>().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_testkit::machine_tree::Tree;

    #[test]
    fn averages_of_the_kernel() {
        let tree = Tree::new(&[("proc/loadavg", "0.10 0.85 1.49 1/93 10498\n")]);
        let expected = LoadAverage { one_min: 0.1, five_min: 0.85, fifteen_min: 1.49 };
        assert_eq!(average(tree.root()), Some(expected));
        assert_eq!(average(Tree::new(&[("proc/loadavg", "x\n")]).root()), None);
    }
}
