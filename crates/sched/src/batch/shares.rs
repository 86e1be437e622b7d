//! Time is shared between clients by their weights, not between streams: one with many streams or a long
//! prompt runs ahead, and sits out steps until those behind it have caught up. Time is given, not
//! read. Counting what each client was served: Fairness in Serving Large Language Models (Sheng et
//! al. 2024), there in tokens.

use super::client::EQUAL;
use super::{Client, ClientId, StepPart};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Clients remembered when they are gone, at most: those that are here come on top.
const GONE_MOST: usize = 1024;

/// Steps with all others that one who comes is before them, at most.
const STEPS_BEFORE: u32 = 8;

/// A client is expected back for so many sequences given to others.
const EXPECTED_FOR: u64 = 32;

/// What each client was served.
#[derive(Debug, Clone, Default)]
pub(super) struct Shares {
    served: BTreeMap<ClientId, Duration>,
    /// Who had a sequence in the last step.
    here: BTreeSet<ClientId>,
    /// Of those served.
    weights: BTreeMap<ClientId, u32>,
    /// When each got its last sequence, by the planner's clock, if that was not long ago.
    admitted: BTreeMap<ClientId, u64>,
    /// What a step takes with all of them. Nobody sits out who is ahead by less than half of it:
    /// clients that are about level are computed together, which costs less than turns.
    step: Duration,
}

impl Shares {
    /// Notes who has a sequence now. Who comes has a few steps before the least served of the
    /// others, whose share it did not use, and no more: time is not saved up. Who left ahead of the
    /// others is so when it is back.
    pub(super) fn enter(&mut self, clients: impl Iterator<Item = ClientId>) {
        let here: BTreeSet<ClientId> = clients.collect();
        let stayed = here.intersection(&self.here).filter_map(|client| self.served.get(client));
        let least = stayed.min().copied();
        if least.is_none() {
            self.served.clear();
        }
        let floor = least.unwrap_or_default().saturating_sub(self.step * STEPS_BEFORE);
        for &client in here.difference(&self.here) {
            let served = self.served.entry(client).or_default();
            *served = floor.max(*served);
        }
        self.served.retain(|client, served| here.contains(client) || *served > floor);
        if self.served.len() > here.len() + GONE_MOST {
            self.served.retain(|client, _| here.contains(client));
        }
        self.weights.retain(|client, _| self.served.contains_key(client));
        self.here = here;
    }

    /// Notes that a client got a sequence at `now`.
    pub(super) fn admitted(&mut self, client: Client, now: u64) {
        self.served.entry(client.id).or_default();
        self.weights.insert(client.id, client.weight);
        self.admitted.insert(client.id, now);
        self.admitted.retain(|_, at| now.saturating_sub(*at) < EXPECTED_FOR);
    }

    /// Whether others than `client` are here or may be back soon.
    pub(super) fn has_others(&self, client: ClientId) -> bool {
        self.admitted.keys().any(|other| *other != client)
    }

    /// Whether a client takes part in the next step.
    pub(super) fn takes_part(&self, client: ClientId) -> bool {
        let served = |client| self.served.get(client).copied().unwrap_or_default();
        let least = self.here.iter().map(served).min().unwrap_or_default();
        served(&client) <= least + self.step / 2
    }

    /// How long a step took, and which client each of its parts belonged to.
    pub(super) fn took(&mut self, parts: &[(ClientId, StepPart)], time: Duration) {
        self.step = time.max(self.step * 7 / 8);
        let tokens: u32 = parts.iter().map(|(_, part)| part.tokens).sum();
        for (client, part) in parts {
            let weight = self.weights.get(client).copied().unwrap_or(EQUAL).max(1);
            let part = time * part.tokens / tokens.max(1);
            *self.served.entry(*client).or_default() += part * EQUAL / weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::RequestId;

    const MS: Duration = Duration::from_millis(1);

    fn part(client: u128, tokens: u32) -> (ClientId, StepPart) {
        let (request, sequence) = (RequestId(0), 0);
        let part =
            StepPart { request, sequence, first: 0, tokens, samples: true, decodes: tokens == 1 };
        (ClientId(client), part)
    }

    fn enter(shares: &mut Shares, clients: &[u128]) {
        shares.enter(clients.iter().copied().map(ClientId));
    }

    #[test]
    fn who_ran_ahead_sits_out_until_the_others_have_caught_up() {
        let mut shares = Shares::default();
        enter(&mut shares, &[1, 2]);
        shares.took(&[part(1, 9), part(2, 1)], 10 * MS);
        let alone = (0..20).take_while(|_| {
            let sits_out = !shares.takes_part(ClientId(1));
            shares.took(&[part(2, 1)], MS);
            sits_out
        });
        // It has had 8 ms more, and half of a step would not count.
        assert_eq!(alone.count(), 6);
    }

    #[test]
    fn time_is_divided_by_weight() {
        let mut shares = Shares::default();
        for (id, weight) in [(1, 300), (2, 100)] {
            shares.admitted(Client { weight, ..ClientId(id).into() }, 0);
        }
        enter(&mut shares, &[1, 2]);
        let mut had = [0, 0];
        for _ in 0..4000 {
            let mut parts = vec![part(1, 1), part(2, 1)];
            parts.retain(|(client, _)| shares.takes_part(*client));
            for (client, _) in &parts {
                had[usize::from(client.0 == 2)] += 1000 / parts.len();
            }
            shares.took(&parts, MS);
        }
        let ratio = had[0] as f64 / had[1] as f64;
        assert!((2.8..3.2).contains(&ratio), "{had:?}");
    }

    #[test]
    fn who_is_about_level_is_computed_together() {
        let mut shares = Shares::default();
        enter(&mut shares, &[1, 2]);
        shares.took(&[part(1, 2), part(2, 1)], 3 * MS);
        // One for whom a step is hardly shorter alone.
        for _ in 0..50 {
            let mut parts = vec![part(1, 1), part(2, 1)];
            parts.retain(|(client, _)| shares.takes_part(*client));
            assert_eq!(parts.len(), 2);
            shares.took(&parts, 3 * MS);
        }
    }

    #[test]
    fn who_left_ahead_is_so_when_it_is_back() {
        let mut shares = Shares::default();
        enter(&mut shares, &[1, 2]);
        shares.took(&[part(1, 9), part(2, 1)], 100 * MS);
        enter(&mut shares, &[2, 3]);
        assert!(shares.served[&ClientId(3)] <= shares.served[&ClientId(2)]);
        shares.took(&[part(2, 1)], MS);
        enter(&mut shares, &[1, 2, 3]);
        assert!(!shares.takes_part(ClientId(1)), "it has had 90 ms");
        assert!(shares.takes_part(ClientId(3)));
    }

    #[test]
    fn who_comes_is_a_few_steps_before_the_others_and_no_more() {
        let mut shares = Shares::default();
        enter(&mut shares, &[1]);
        for _ in 0..1000 {
            shares.took(&[part(1, 4)], 4 * MS);
        }
        enter(&mut shares, &[1, 2]);
        let alone = (0..100).take_while(|_| {
            let alone = !shares.takes_part(ClientId(1));
            shares.took(&[part(2, 1)], MS);
            alone
        });
        assert_eq!(alone.count(), 32, "eight steps of 4 ms");
    }

    #[test]
    fn what_clients_were_served_is_forgotten_when_nobody_is_left_and_is_never_much() {
        let mut shares = Shares::default();
        for client in 0..5000 {
            enter(&mut shares, &[client, client + 1]);
            shares.took(&[part(client, 1)], 10 * MS);
            assert!(shares.served.len() <= 2 + GONE_MOST, "{}", shares.served.len());
        }
        enter(&mut shares, &[]);
        enter(&mut shares, &[7]);
        assert_eq!(shares.served[&ClientId(7)], Duration::ZERO);
    }
}
