//! Memory of several models on one machine: how much each is planned for.

/// What each of several models may take of `room_bytes`, where each needs `sizes` for everything and
/// the shortest context. Where all fit side by side, each gets that and an equal part of what is left;
/// where they do not, each is planned for all of it, and they take turns.
pub fn shares(room_bytes: u64, sizes: &[u64]) -> Vec<u64> {
    let all = sizes.iter().try_fold(0u64, |all, size| all.checked_add(*size));
    match all.and_then(|all| room_bytes.checked_sub(all)) {
        Some(left) => sizes.iter().map(|size| size + left / sizes.len().max(1) as u64).collect(),
        None => vec![room_bytes; sizes.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn models_share_what_all_of_them_leave_or_take_turns() {
        assert_eq!(shares(100, &[30, 10]), [60, 40]);
        assert_eq!(shares(40, &[30, 10]), [30, 10]);
        assert_eq!(shares(39, &[30, 10]), [39, 39]);
        assert_eq!(shares(39, &[90]), [39]);
        assert_eq!(shares(u64::MAX, &[u64::MAX, 1]), [u64::MAX; 2]);
        assert!(shares(7, &[]).is_empty());
    }
}
