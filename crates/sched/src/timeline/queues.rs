//! The queues of a plan: what a memory has for its unit and for the links that begin there, and
//! what a tier without others below it has or will have. Cursors pass what somebody has taken.

use std::cmp::Reverse;

use motley_cost::Nanos;

use crate::work::LayerWork;

/// Owner of what is in a tier without others below, or on its way there.
pub(super) const IN_TIER: u16 = u16::MAX - 1;
/// Owner of what is computed.
pub(super) const DONE: u16 = u16::MAX;

/// Items with a time at which they are there.
#[derive(Debug, Default)]
struct Coming {
    items: Vec<(u16, Nanos)>,
    /// How many there were before anything was planned.
    at_first: usize,
    front: usize,
}

impl Coming {
    fn clear(&mut self) {
        self.items.clear();
    }

    /// First to arrive first.
    fn sort(&mut self, work: &LayerWork<'_>) {
        self.items.sort_unstable_by_key(|&(i, here)| (here, work.items[usize::from(i)].expert));
        self.at_first = self.items.len();
    }

    fn begin(&mut self) {
        self.items.truncate(self.at_first);
        self.front = 0;
    }

    /// The first that `owner` still has.
    fn first(&mut self, is_free: impl Fn(u16) -> bool) -> Option<(u16, Nanos)> {
        while let Some(&(item, _)) = self.items.get(self.front)
            && !is_free(item)
        {
            self.front += 1;
        }
        self.items.get(self.front).copied()
    }
}

/// What a memory has and no tier below it.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// Low load first.
    here: Vec<u16>,
    /// Of them on a link already, too far to wait for: only a unit may take them.
    stay: Vec<u16>,
    coming: Coming,
    /// One past the last a link may take.
    back: usize,
}

impl Pool {
    pub(super) fn clear(&mut self) {
        self.here.clear();
        self.stay.clear();
        self.coming.clear();
    }

    pub(super) fn add(&mut self, item: u16) {
        self.here.push(item);
    }

    pub(super) fn add_staying(&mut self, item: u16) {
        self.here.push(item);
        self.stay.push(item);
    }

    pub(super) fn add_coming(&mut self, item: u16, here: Nanos) {
        self.coming.items.push((item, here));
    }

    pub(super) fn sort(&mut self, work: &LayerWork<'_>) {
        let item = |i: u16| work.items[usize::from(i)];
        self.here.sort_unstable_by_key(|&i| (item(i).tokens, item(i).expert));
        self.coming.sort(work);
    }

    pub(super) fn begin(&mut self) {
        self.back = self.here.len();
        self.coming.begin();
    }

    /// All that it has or will have before anything is planned.
    pub(super) fn items(&self) -> impl Iterator<Item = u16> {
        let coming = &self.coming.items[..self.coming.at_first];
        self.here.iter().copied().chain(coming.iter().map(|(item, _)| *item))
    }

    /// For a link that is free at `free`: the highest load that is there then, else the first to
    /// come. With the time at which the transfer begins.
    pub(super) fn highest(
        &mut self,
        work: &LayerWork<'_>,
        is_free: impl Fn(u16) -> bool,
        free: Nanos,
    ) -> Option<(u16, Nanos)> {
        while let Some(item) = self.here[..self.back].last()
            && (!is_free(*item) || self.stay.contains(item))
        {
            self.back -= 1;
        }
        let here = self.back.checked_sub(1).map(|at| (self.here[at], free));
        let come = self.coming.first(is_free).map(|(item, at)| (item, free.max(at)));
        let load = |item: u16| work.items[usize::from(item)].tokens;
        let both = [here, come].into_iter().flatten();
        both.min_by_key(|&(item, begins)| (begins, Reverse(load(item))))
    }

    /// For a unit: the lowest load from `cursor` on that is `wanted`.
    pub(super) fn lowest(&self, cursor: &mut usize, wanted: impl Fn(u16) -> bool) -> Option<u16> {
        while let Some(&item) = self.here.get(*cursor)
            && !wanted(item)
        {
            *cursor += 1;
        }
        self.here.get(*cursor).copied()
    }

    /// For a unit that is free at `free`: the lowest load that is there then, else the first to
    /// come. With the time at which it can begin.
    pub(super) fn soonest(
        &mut self,
        work: &LayerWork<'_>,
        is_free: impl Fn(u16) -> bool,
        cursor: &mut usize,
        free: Nanos,
    ) -> Option<(u16, Nanos)> {
        let here = self.lowest(cursor, &is_free).map(|item| (item, free));
        let come = self.coming.first(is_free).map(|(item, at)| (item, free.max(at)));
        let load = |item: u16| work.items[usize::from(item)].tokens;
        let both = [here, come].into_iter().flatten();
        both.min_by_key(|&(item, begins)| (begins, load(item)))
    }
}

/// What a tier without others below it has or will have.
#[derive(Debug, Default)]
pub(super) struct Resident {
    /// High load first.
    here: Vec<u16>,
    coming: Coming,
    /// First the tier's unit has not taken; one past the last a unit above may take.
    front: usize,
    back: usize,
}

impl Resident {
    pub(super) fn clear(&mut self) {
        self.here.clear();
        self.coming.clear();
    }

    pub(super) fn add(&mut self, item: u16) {
        self.here.push(item);
    }

    pub(super) fn add_coming(&mut self, item: u16, here: Nanos) {
        self.coming.items.push((item, here));
    }

    pub(super) fn sort(&mut self, work: &LayerWork<'_>) {
        let item = |i: u16| work.items[usize::from(i)];
        self.here.sort_unstable_by_key(|&i| (Reverse(item(i).tokens), item(i).expert));
        self.coming.sort(work);
    }

    pub(super) fn begin(&mut self, owner: &mut [u16]) {
        (self.front, self.back) = (0, self.here.len());
        self.coming.begin();
        let coming = self.coming.items.iter().map(|(item, _)| item);
        self.here.iter().chain(coming).for_each(|&item| owner[usize::from(item)] = IN_TIER);
    }

    /// For the tier's unit, free at `free`: the highest load among what is there then, else the
    /// first to arrive. With the time at which it can begin.
    pub(super) fn next(
        &mut self,
        work: &LayerWork<'_>,
        owner: &[u16],
        free: Nanos,
    ) -> Option<(u16, Nanos)> {
        let is_free = |item: u16| owner[usize::from(item)] == IN_TIER;
        while self.here.get(self.front).is_some_and(|&item| !is_free(item)) {
            self.front += 1;
        }
        let here = self.here.get(self.front).map(|&item| (item, free));
        let come = self.coming.first(is_free).map(|(item, at)| (item, free.max(at)));
        let load = |item: u16| Reverse(work.items[usize::from(item)].tokens);
        // The first of equals is the one that is there.
        let both = [here, come].into_iter().flatten();
        both.min_by_key(|&(item, begins)| (begins, load(item)))
    }

    /// For an idle unit above: the lowest load that is there and `wanted`.
    pub(super) fn lowest(&mut self, owner: &[u16], wanted: impl Fn(u16) -> bool) -> Option<u16> {
        let is_free = |item: u16| owner[usize::from(item)] == IN_TIER;
        while self.back > self.front && !is_free(self.here[self.back - 1]) {
            self.back -= 1;
        }
        let rest = &self.here[self.front.min(self.back)..self.back];
        rest.iter().rev().copied().find(|&item| is_free(item) && wanted(item))
    }
}
