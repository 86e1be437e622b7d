//! Strongly connected components of a small graph.

/// Groups of two and more nodes that all reach each other; nodes and groups in order.
pub(super) fn circles(
    nodes: usize,
    arrows: impl Iterator<Item = (usize, usize)>,
) -> Vec<Vec<usize>> {
    let mut next = vec![Vec::new(); nodes];
    for (from, to) in arrows {
        next[from].push(to);
    }
    let reach: Vec<Vec<bool>> = (0..nodes).map(|node| reached(&next, node)).collect();
    let mut grouped = vec![false; nodes];
    let mut groups = Vec::new();
    for (node, reached) in reach.iter().enumerate() {
        let group: Vec<usize> = (node..nodes)
            .filter(|&other| !grouped[other] && reached[other] && reach[other][node])
            .collect();
        group.iter().for_each(|&one| grouped[one] = true);
        if group.len() > 1 {
            groups.push(group);
        }
    }
    groups
}

/// Which nodes can be reached from `start` over one arrow or more.
fn reached(next: &[Vec<usize>], start: usize) -> Vec<bool> {
    let mut found = vec![false; next.len()];
    let mut open = next[start].clone();
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut found[node], true) {
            open.extend(&next[node]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::circles;

    #[test]
    fn only_what_reaches_each_other_is_a_group() {
        let arrows = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (5, 6), (6, 5), (4, 5)];
        assert_eq!(circles(8, arrows.into_iter()), [vec![0, 1, 2], vec![5, 6]]);
        assert!(circles(3, [(0, 1), (1, 2), (0, 2)].into_iter()).is_empty());
    }
}
