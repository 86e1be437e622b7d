//! The arena under every order of threads: no slot has two holders or is free and leased at once,
//! and data stays with its tenant. `cargo xtask check loom`; as ordinary tests a sample of orders.

use super::*;
use motley_testkit::explore::{Holders, explore, spawn};

fn arena(slots: u32, usable_slots: u32) -> Arena {
    let huge_pages = HugePages::Refuse;
    Arena::new(ArenaSpec { slot_bytes: 8, max_slots: slots, usable_slots, huge_pages })
        .expect("a small arena")
}

/// Every slot is leased or free, warm or cold: one of the three.
fn check(arena: &Arena) {
    let slots = arena.0.slots();
    assert!(slots.warm.is_disjoint(&slots.cold), "{slots:?}");
    let free = slots.warm.len() + slots.cold.len();
    assert_eq!(slots.leased as usize + free, arena.0.max_slots as usize, "{slots:?}");
}

/// Leases, writes its mark, shares what it wrote with another reader, and returns it.
fn tenant(arena: &Arena, holders: &Holders, mark: u8) {
    let Some(mut lease) = arena.lease() else { return };
    let index = lease.index() as usize;
    holders.hold(index, || {
        lease.bytes_mut().fill(mark);
        check(arena);
        assert_eq!(lease.bytes_mut(), [mark; 8]);
    });
    let filled = lease.fill(0, 8).expect("all of the slot");
    let other = filled.clone();
    drop(filled);
    holders.hold(index, || assert_eq!(other.bytes(), [mark; 8]));
}

#[test]
fn no_slot_has_two_holders_while_the_arena_shrinks_and_grows() {
    explore("arena: tenants and sizes", 3, || {
        let (arena, holders) = (arena(3, 2), Arc::new(Holders::new(3)));
        let tenants = [1, 2].map(|mark| {
            let (arena, holders) = (arena.clone(), Arc::clone(&holders));
            spawn(move || tenant(&arena, &holders, mark))
        });
        arena.set_usable(1);
        check(&arena);
        arena.set_usable(3);
        check(&arena);
        tenants.into_iter().for_each(|one| one.join().expect("a tenant that ends"));
        check(&arena);
        assert_eq!(arena.leased_slots(), 0);
        assert!(arena.occupied_bytes() <= 3 * arena.stride_bytes() as u64);
    });
}

#[test]
fn what_settles_keeps_its_bytes_whoever_leases() {
    explore("arena: settling", 4, || settling(false));
}

#[test]
fn what_settles_keeps_its_bytes_whoever_reads() {
    explore("arena: settling while it is read", 3, || settling(true));
}

/// Settles what lies in slot 1 while slot 0 comes free and is leased by another.
fn settling(is_read: bool) {
    let (arena, holders) = (arena(2, 2), Arc::new(Holders::new(2)));
    let low = arena.lease().expect("slot 0");
    let mut lease = arena.lease().expect("slot 1");
    lease.bytes_mut().fill(7);
    let filled = lease.fill(0, 8).expect("all of the slot");
    let reading = is_read.then(|| {
        let reader = filled.clone();
        spawn(move || assert_eq!(reader.bytes(), [7; 8]))
    });
    let leasing = {
        let (arena, holders) = (arena.clone(), Arc::clone(&holders));
        spawn(move || {
            drop(low);
            tenant(&arena, &holders, 1);
        })
    };
    let settled = filled.settle().unwrap_or_else(|unmoved| unmoved);
    holders.hold(settled.index() as usize, || assert_eq!(settled.bytes(), [7; 8]));
    check(&arena);
    reading.into_iter().for_each(|one| one.join().expect("a reader that ends"));
    leasing.join().expect("a tenant that ends");
    assert_eq!((settled.bytes(), arena.leased_slots()), (&[7; 8][..], 1));
}
