//! Measures one block of synthetic experts on one pool over two cores against the same block
//! with every expert's neurons divided between two groups of one core (G1), in turns. Prints
//! CSV; wants an idle machine.
//!
//!     cargo run --release -p motley-ggml --example split

#![allow(
    clippy::disallowed_methods,
    reason = "it measures: it reads the clock, on its own threads"
)]

mod groups;
mod share;
mod stack;

use groups::Groups;
use motley_ggml::{Runtime, Seam};
use motley_model::gguf::GgmlType;
use share::Share;
use stack::{Shape, Stack};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: u32 = 8;
/// Idle workers of the other side poll for about this long before they sleep.
const SETTLE: Duration = Duration::from_millis(400);
const COUNTED_RUNS: u32 = 300;
/// Experts of one block: top-8, as Qwen3-30B-A3B and gpt-oss have at most.
const EXPERTS: u32 = 8;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    Runtime::start(Seam::Absent)?;
    println!("type,hidden,width,experts,tokens,round,pool_us,split_us,ratio");
    // One expert of Qwen3-30B-A3B, and one of twice its width.
    for (ty, width) in [(GgmlType::Q4_0, 768), (GgmlType::Q4_K, 1536)] {
        let shape = Shape { hidden: 2048, width, experts: 64, ty };
        let stack = Arc::new(Stack::new(shape).ok_or("no memory")?);
        for tokens in [1, 16] {
            let rows = (EXPERTS as usize, tokens);
            let mut whole = Share::new(&stack, 0..width, rows, 2).ok_or("no memory")?;
            let mut split = Groups::new(&stack, rows, &[0, 1]).ok_or("no memory")?;
            for round in 0..ROUNDS {
                let pool_us = median_us(|turn| run_whole(&mut whole, turn));
                let split_us = median_us(|turn| run_split(&mut split, turn));
                let ratio = pool_us / split_us;
                print!("{ty},{},{width},{EXPERTS},{tokens},{round},", shape.hidden);
                println!("{pool_us:.1},{split_us:.1},{ratio:.3}");
            }
        }
    }
    Ok(())
}

fn run_whole(block: &mut Share, turn: u32) {
    block.choose(turn * EXPERTS);
    assert!(block.run(), "ggml computes the block");
}

fn run_split(block: &mut Groups, turn: u32) {
    block.choose(turn * EXPERTS);
    assert!(block.run(), "ggml computes the block");
}

/// Of [`COUNTED_RUNS`] runs after some that are not counted.
fn median_us(mut run: impl FnMut(u32)) -> f64 {
    let begun = Instant::now();
    let mut turn = 0;
    while begun.elapsed() < SETTLE {
        run(turn);
        turn += 1;
    }
    let mut times: Vec<f64> = (0..COUNTED_RUNS)
        .map(|_| {
            let begun = Instant::now();
            run(turn);
            turn += 1;
            begun.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
