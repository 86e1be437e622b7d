//! How this CPU and build can lay out a model's routed experts in memory. Asks ggml; chooses
//! nothing.

use motley_cost::calibration::WeightLayout;
use motley_ggml::{Layout, MatrixShape, Runtime};
use motley_model::ModelSpec;
use motley_model::gguf::GgmlType;
use motley_plan::OfferedLayouts;

/// Layouts this CPU and build compute the routed experts of `spec` in, by type, the type with most
/// bytes first.
pub fn offered_layouts(_: &Runtime, spec: &ModelSpec) -> Vec<OfferedLayouts> {
    let mut types: Vec<(GgmlType, Vec<(MatrixShape, u64)>)> = Vec::new();
    for tensor in spec.tensors.iter().filter(|tensor| tensor.role.is_expert_matrix()) {
        let dimension = |at: usize| tensor.dims.get(at).copied().unwrap_or(1);
        let shape =
            MatrixShape { ty: tensor.ty, row: dimension(0) as u32, rows: dimension(1) as u32 };
        let known = types.iter_mut().find(|(ty, _)| *ty == tensor.ty);
        match known {
            Some((_, shapes)) => shapes.push((shape, dimension(2))),
            None => types.push((tensor.ty, vec![(shape, dimension(2))])),
        }
    }
    let all = [WeightLayout::Plain, WeightLayout::Repacked, WeightLayout::Amx];
    let offered = |(ty, shapes): (GgmlType, Vec<(MatrixShape, u64)>)| {
        let bytes = |layout: WeightLayout| {
            let one = |(shape, experts): &(MatrixShape, u64)| {
                layout_of(layout).bytes(shape).map(|bytes| bytes * experts)
            };
            Some((layout, shapes.iter().map(one).sum::<Option<u64>>()?))
        };
        OfferedLayouts { ty, layouts: all.into_iter().filter_map(bytes).collect() }
    };
    let mut types: Vec<_> = types.into_iter().map(offered).collect();
    types
        .sort_by_key(|offered| std::cmp::Reverse(offered.layouts.first().map(|(_, bytes)| *bytes)));
    types
}

/// A layout of the plan, as ggml's kernels know it.
pub(crate) fn layout_of(layout: WeightLayout) -> Layout {
    match layout {
        WeightLayout::Plain => Layout::Plain,
        WeightLayout::Repacked => Layout::Repacked,
        WeightLayout::Amx => Layout::Amx,
    }
}
