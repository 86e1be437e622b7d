//! Which models of a server are in memory: loaded when somebody asks, unloaded when idle or when
//! another needs the room. Decides only: no clock, no thread; the server carries out each [`Step`]
//! and says how it ended.
//!
//! ```text
//!            Load                 loaded                    Unload              unloaded
//!   absent ───────► loading ─────────────────► here ─────────────────► leaving ─────────► absent
//!      ▲               │ failed                  │ nobody uses it, and
//!      └───────────────┘                         ├ it was idle for its time, or
//!                                                └ another waits for the room
//! ```
//!
//! * Models wait for room in the order they were asked for. While the first of them waits, whoever
//!   asks for a model that must make room waits for that one's next turn: nobody is starved by a
//!   stream of requests for another model.
//! * Of models that nobody uses, the one used longest ago goes first.
//! * A model larger than all there is may be loaded alone: its plan fits it in.

use std::collections::VecDeque;
use std::time::Duration;

/// A model, by its place in the list.
pub type ModelIndex = usize;

/// How long a model stays that nobody uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepAlive {
    /// So long, from the end of the last request.
    For(Duration),
    /// Until another needs the room.
    Always,
}

/// A model's place in memory, asked for; given back with [`ModelSet::release`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub model: ModelIndex,
    /// Which load of the model it waits for or uses.
    load: u64,
}

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimState {
    /// The model is here and stays until the claim is released.
    Ready,
    Waiting,
    /// It could not be loaded.
    Failed,
}

/// What is to be done next, and to be reported when done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Then [`ModelSet::loaded`] or [`ModelSet::failed`].
    Load(ModelIndex),
    /// Then [`ModelSet::unloaded`].
    Unload(ModelIndex),
}

/// Where a model is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelState {
    Absent,
    Loading,
    Here,
    /// It takes no new requests and goes when those it has are answered.
    Leaving,
}

/// Models that share memories.
#[derive(Debug, Clone)]
pub struct ModelSet {
    /// Bytes of each memory: RAM, then devices.
    rooms: Vec<u64>,
    /// For requests that do not say.
    keep_alive: KeepAlive,
    models: Vec<Entry>,
    /// Models that somebody waits for, in the order they were asked for.
    wanted: VecDeque<ModelIndex>,
}

#[derive(Debug, Clone)]
struct Entry {
    /// Of each memory.
    needs: Vec<u64>,
    state: ModelState,
    /// Whether its unloading was given out as a step.
    unloading: bool,
    /// Loads so far that succeeded or failed; the current one counts.
    loads: u64,
    /// Loads up to this one are over: their claims mean nothing.
    over: u64,
    /// Claims on the current load.
    users: usize,
    /// Claims on the next one.
    waiting: usize,
    used_at: Duration,
    keep_alive: KeepAlive,
}

impl ModelSet {
    /// None is loaded. `needs` has the bytes of each memory for each model.
    pub fn new(rooms: Vec<u64>, needs: Vec<Vec<u64>>, keep_alive: KeepAlive) -> Self {
        let entry = |needs: Vec<u64>| Entry {
            needs: needs.iter().zip(&rooms).map(|(need, room)| *need.min(room)).collect(),
            state: ModelState::Absent,
            unloading: false,
            loads: 0,
            over: 0,
            users: 0,
            waiting: 0,
            used_at: Duration::ZERO,
            keep_alive,
        };
        let models = needs.into_iter().map(entry).collect();
        Self { rooms, keep_alive, models, wanted: VecDeque::new() }
    }

    /// Somebody wants to use a model; it is loaded if need be.
    pub fn claim(&mut self, model: ModelIndex) -> Claim {
        let entry = &mut self.models[model];
        if entry.state == ModelState::Here {
            entry.users += 1;
            return Claim { model, load: entry.loads };
        }
        entry.waiting += 1;
        if entry.waiting == 1 && entry.state != ModelState::Loading {
            self.wanted.push_back(model);
        }
        Claim { model, load: self.models[model].loads + 1 }
    }

    /// What became of a claim.
    pub fn state_of(&self, claim: Claim) -> ClaimState {
        let entry = &self.models[claim.model];
        match claim.load {
            load if load <= entry.over => ClaimState::Failed,
            load if load == entry.loads => ClaimState::Ready,
            _ => ClaimState::Waiting,
        }
    }

    /// Who asked needs the model no longer, or left while waiting for it. `keep_alive` holds until
    /// the next request.
    pub fn release(&mut self, claim: Claim, keep_alive: Option<KeepAlive>, now: Duration) {
        let usual = self.keep_alive;
        let state = self.state_of(claim);
        let entry = &mut self.models[claim.model];
        match state {
            ClaimState::Failed => {}
            ClaimState::Ready => {
                entry.users -= 1;
                (entry.used_at, entry.keep_alive) = (now, keep_alive.unwrap_or(usual));
            }
            ClaimState::Waiting => {
                entry.waiting -= 1;
                if entry.waiting == 0 {
                    self.wanted.retain(|model| *model != claim.model);
                }
            }
        }
    }

    /// The next thing to do at `now`, if there is one; until [`ModelSet::wakes_at`] nothing else
    /// comes up by itself.
    pub fn next_step(&mut self, now: Duration) -> Option<Step> {
        let goes = |(_, entry): &(usize, &Entry)| entry.is_due(now) || entry.has_left();
        let first = self.models.iter().enumerate().find(goes).map(|(model, _)| model);
        if let Some(model) = first {
            let entry = &mut self.models[model];
            (entry.state, entry.unloading) = (ModelState::Leaving, true);
            return Some(Step::Unload(model));
        }
        let wanted = *self.wanted.front()?;
        match self.models[wanted].state {
            ModelState::Absent if self.fits(wanted) => {
                self.wanted.pop_front();
                self.models[wanted].state = ModelState::Loading;
                Some(Step::Load(wanted))
            }
            ModelState::Absent => {
                let model = self.in_the_way(wanted)?;
                self.models[model].state = ModelState::Leaving;
                self.next_step(now)
            }
            // It was leaving when it was asked for, and goes first.
            _ => None,
        }
    }

    /// When the next model has been idle for its time.
    pub fn wakes_at(&self) -> Option<Duration> {
        self.models.iter().filter_map(Entry::due_at).min()
    }

    /// A model is here, for those who waited for it.
    pub fn loaded(&mut self, model: ModelIndex, now: Duration) {
        let usual = self.keep_alive;
        let entry = &mut self.models[model];
        entry.state = ModelState::Here;
        entry.loads += 1;
        entry.users = std::mem::take(&mut entry.waiting);
        (entry.used_at, entry.keep_alive) = (now, usual);
    }

    /// It could not be loaded: those who wait for it hear so.
    pub fn failed(&mut self, model: ModelIndex) {
        let entry = &mut self.models[model];
        entry.state = ModelState::Absent;
        entry.loads += 1;
        entry.over = entry.loads;
        entry.waiting = 0;
    }

    /// A model is gone, and its memory free.
    pub fn unloaded(&mut self, model: ModelIndex) {
        let entry = &mut self.models[model];
        entry.state = ModelState::Absent;
        entry.unloading = false;
        entry.over = entry.loads;
    }

    /// Where a model is.
    pub fn state(&self, model: ModelIndex) -> ModelState {
        self.models[model].state
    }

    /// Requests that use a model, and those that wait for it.
    pub fn requests(&self, model: ModelIndex) -> (usize, usize) {
        let entry = &self.models[model];
        (entry.users, entry.waiting)
    }

    /// Bytes of each memory that a model takes when it is here.
    pub fn needs(&self, model: ModelIndex) -> &[u64] {
        &self.models[model].needs
    }

    /// When a model goes if nobody uses it before.
    pub fn due_at(&self, model: ModelIndex) -> Option<Duration> {
        self.models[model].due_at()
    }

    /// Bytes of each memory, and those that are taken.
    pub fn memories(&self) -> Vec<(u64, u64)> {
        let taken = |memory: usize| {
            let there = self.models.iter().filter(|entry| entry.state != ModelState::Absent);
            there.map(|entry| entry.needs[memory]).sum()
        };
        self.rooms.iter().enumerate().map(|(memory, room)| (*room, taken(memory))).collect()
    }

    /// Whether a model fits beside those that are here, or coming, or not gone yet.
    fn fits(&self, model: ModelIndex) -> bool {
        let needs = &self.models[model].needs;
        let fits = |((room, taken), need): ((u64, u64), &u64)| taken.saturating_add(*need) <= room;
        self.memories().into_iter().zip(needs).all(fits)
    }

    /// The model that makes room: the one used longest ago, those that nobody uses first. One at a
    /// time: what is left is looked at again when it has gone, and a model that comes is used first.
    fn in_the_way(&self, wanted: ModelIndex) -> Option<ModelIndex> {
        let moving =
            |entry: &Entry| [ModelState::Loading, ModelState::Leaving].contains(&entry.state);
        if self.models.iter().any(moving) {
            return None;
        }
        let needs = &self.models[wanted].needs;
        let takes = |entry: &Entry| entry.needs.iter().zip(needs).any(|(a, b)| *a.min(b) > 0);
        let here = |entry: &Entry| entry.state == ModelState::Here && takes(entry);
        let here = self.models.iter().enumerate().filter(|(_, entry)| here(entry));
        here.min_by_key(|(_, entry)| (entry.users > 0, entry.used_at)).map(|(model, _)| model)
    }
}

impl Entry {
    fn is_due(&self, now: Duration) -> bool {
        self.due_at().is_some_and(|due| due <= now)
    }

    /// Whether it made room and its last request is answered.
    fn has_left(&self) -> bool {
        self.state == ModelState::Leaving && self.users == 0 && !self.unloading
    }

    fn due_at(&self) -> Option<Duration> {
        match self.keep_alive {
            KeepAlive::For(time) if self.state == ModelState::Here && self.users == 0 => {
                Some(self.used_at.saturating_add(time))
            }
            _ => None,
        }
    }
}
