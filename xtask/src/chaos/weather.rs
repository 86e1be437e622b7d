//! How bad a disk is when. Pure: the time and the dice are given.
//!
//! Calm and bad times take turns: a disk that always fails shows only that errors are errors, one
//! that recovers shows that the server does too.

use std::time::Duration;

/// Length of a calm time and a bad one together, and the calm part of it.
const TURN: Duration = Duration::from_secs(20);
const CALM: Duration = Duration::from_secs(8);
/// Longest delay of a late read.
const LATE_MAX: Duration = Duration::from_secs(2);

/// What becomes of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is answered.
    Well,
    /// It fails (EIO).
    Fails,
    /// It is answered after this long.
    Late(Duration),
    /// Only the first half of it is answered.
    Short,
}

/// Chances of each mishap in bad times, per read.
#[derive(Debug, Clone, Copy)]
struct Chances {
    fails: f64,
    late: f64,
    short: f64,
}

/// Mild, rough and terrible bad times, in turn.
const BAD: [Chances; 3] = [
    Chances { fails: 0.0005, late: 0.002, short: 0.001 },
    Chances { fails: 0.01, late: 0.01, short: 0.01 },
    Chances { fails: 0.3, late: 0.05, short: 0.05 },
];

/// The fate of a read `since` the beginning, by a die in `[0, 1)`.
pub(super) fn fate(since: Duration, die: f64) -> Fate {
    let turn = since.as_secs_f64() / TURN.as_secs_f64();
    let within = Duration::from_secs_f64(turn.fract() * TURN.as_secs_f64());
    if within < CALM {
        return Fate::Well;
    }
    let Chances { fails, late, short } = BAD[turn as usize % BAD.len()];
    match die {
        die if die < fails => Fate::Fails,
        // What is left of the die within its range says how late.
        die if die < fails + late => Fate::Late(LATE_MAX.mul_f64((die - fails) / late)),
        die if die < fails + late + short => Fate::Short,
        _ => Fate::Well,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calm_and_bad_times_take_turns() {
        let at = |seconds| fate(Duration::from_secs_f64(seconds), 0.0);
        assert_eq!([at(0.0), at(7.9), at(20.5), at(47.0)], [Fate::Well; 4]);
        assert_eq!([at(8.1), at(19.9), at(28.5), at(59.0)], [Fate::Fails; 4]);
    }

    #[test]
    fn every_mishap_has_its_chance() {
        let terrible = |die| fate(Duration::from_secs(50), die);
        assert_eq!(terrible(0.29), Fate::Fails);
        assert!(matches!(terrible(0.34), Fate::Late(late) if late <= LATE_MAX));
        assert_eq!(terrible(0.39), Fate::Short);
        assert_eq!(terrible(0.41), Fate::Well);
    }
}
