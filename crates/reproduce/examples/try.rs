fn main() {
    let start = std::time::Instant::now();
    let rows = motley_reproduce::tiers::rows(motley_reproduce::machines::ASSUMED).unwrap();
    for r in &rows {
        let s = |s: &motley_reproduce::tiers::rows::Speeds| {
            format!(
                "today {:7.2} split {:7.2} pin {:7.2} tiers {:7.2} gain {:.2} [{:?} ram-dense {}] hits {:.3} -> {:.3}",
                s.today,
                s.split,
                s.pinned.unwrap_or(0.0),
                s.tiers,
                s.gain(),
                s.prefetch,
                s.dense_in_ram,
                s.hits_today,
                s.hits
            )
        };
        println!(
            "{} {} beyond {} held {:.2}->{:.2}",
            r.machine, r.model, r.beyond_ram, r.held_today, r.held
        );
        println!(
            "   decode  {}  bound {:.2} ({}) most {:.2}",
            s(&r.decode),
            1e3 / r.bound.token_ms,
            r.bound.binds.name(),
            r.most_gain()
        );
        if let Some(p) = &r.prefill {
            println!("   prefill {}", s(p));
        }
        println!("   today {:.1?}\n   tiers {:.1?}", r.lanes_today, r.lanes);
    }
    println!("{:?}", start.elapsed());
}
