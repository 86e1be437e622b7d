//! In which layouts and ways experts are measured on the CPU. Measures nothing.

use motley_cost::calibration::KernelWay;
use motley_ggml::{Cut, Layout, Way};

/// An expert's rows are one block, however many.
const MOST_ROWS: u32 = 1 << 16;
/// Layouts with their ways, those that most runs use first. Not every type and CPU has all of them.
pub(super) const LAYOUTS: [(Layout, &[KernelWay]); 3] = [
    (Layout::Amx, &[KernelWay::Blocks]),
    (Layout::Repacked, &[KernelWay::Whole, KernelWay::Blocks]),
    (Layout::Plain, &[KernelWay::Whole, KernelWay::Blocks, KernelWay::Rearranged]),
];
/// Ways in all layouts.
pub(super) const WAYS: usize = 6;

/// In ggml's words.
pub(super) fn ggml_way(way: KernelWay) -> Way {
    match way {
        KernelWay::Whole => Way::Whole,
        KernelWay::Blocks => Way::Blocks(Cut::of(MOST_ROWS)),
        KernelWay::Rearranged => {
            Way::Blocks(Cut { block_rows: MOST_ROWS, rearrange_from: Some(1) })
        }
    }
}
