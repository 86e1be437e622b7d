//! Which kernels are chosen by measured curves.

use super::*;
use motley_cost::calibration::{FORMAT_VERSION, MeasuredPoint, Provenance};

const ROWS: [u32; 5] = [1, 4, 16, 64, 256];

fn cost(layout: WeightLayout, way: KernelWay, us: [f64; 5]) -> ExpertCost {
    let point = |(tokens, took_us)| MeasuredPoint { tokens, took_us };
    ExpertCost {
        quantisation: "q4_0".into(),
        bits_per_weight: 4.5,
        layout,
        way,
        threads: 2,
        block_us: 0.0,
        launch_us: 0.0,
        us_per_mb: 1.0,
        us_per_mflop: 1.0,
        residuals: Default::default(),
        other_shape_relative: None,
        other_shape_points_relative: None,
        hidden: 2048,
        intermediate: 768,
        measured: ROWS.into_iter().zip(us).map(point).collect(),
    }
}

fn table(experts: Vec<ExpertCost>) -> Table {
    Table {
        version: FORMAT_VERSION,
        provenance: Provenance {
            date: "2026-01-31T12:00:00Z".into(),
            program: "motley".into(),
            cpu: "Some CPU".into(),
            cores: 2,
            instructions: vec![],
            load_one_min: None,
            took_s: 1.0,
            quick: false,
        },
        machine: motley_machine::find("two-core-24gb").unwrap(),
        memory: vec![],
        disk: None,
        links: vec![],
        experts,
        devices: vec![],
    }
}

fn measured() -> Table {
    use KernelWay::{Blocks, Whole};
    use WeightLayout::{Amx, Plain, Repacked};
    table(vec![
        cost(Plain, Whole, [230.0, 900.0, 3_500.0, 14_000.0, 56_000.0]),
        cost(Plain, Blocks, [240.0, 800.0, 2_400.0, 8_000.0, 31_000.0]),
        cost(Repacked, Whole, [190.0, 760.0, 2_900.0, 8_600.0, 33_000.0]),
        cost(Repacked, Blocks, [195.0, 770.0, 1_800.0, 5_900.0, 23_000.0]),
        cost(Amx, Blocks, [250.0, 450.0, 650.0, 1_600.0, 5_700.0]),
    ])
}

fn offered() -> Vec<OfferedLayouts> {
    use WeightLayout::{Amx, Plain, Repacked};
    let layouts = vec![(Plain, 1000), (Repacked, 1000), (Amx, 1100)];
    vec![OfferedLayouts { ty: GgmlType::Q4_0, layouts }]
}

fn facts<'f>(
    table: Option<&'f Table>,
    offered: &'f [OfferedLayouts],
    tokens: (u32, u32, u32),
) -> KernelFacts<'f> {
    let width = 2048.0 * 768.0;
    let (spare_bytes, experts) = (100, (128, 8));
    KernelFacts { table, threads: 2, width, offered, spare_bytes, experts, tokens }
}

#[test]
fn the_mix_decides_the_layout() {
    let (table, offered) = (measured(), offered());
    let layout = |tokens| {
        let kernels = ExpertKernels::in_memory(&facts(Some(&table), &offered, tokens));
        kernels.layout(GgmlType::Q4_0)
    };
    assert_eq!(layout((512, 2048, 256)), WeightLayout::Amx, "prompts");
    assert_eq!(layout((512, 1, 4096)), WeightLayout::Repacked, "answers");
    let plain = vec![(WeightLayout::Plain, 1000)];
    let without = [OfferedLayouts { layouts: plain, ..offered[0].clone() }];
    let kernels = ExpertKernels::in_memory(&facts(Some(&table), &without, (512, 2048, 256)));
    assert_eq!(kernels.layout(GgmlType::Q4_0), WeightLayout::Plain);
}

#[test]
fn a_layout_that_does_not_fit_is_not_taken() {
    let (table, offered) = (measured(), offered());
    let known = facts(Some(&table), &offered, (512, 2048, 256));
    let tight = KernelFacts { spare_bytes: 99, ..known };
    let kernels = ExpertKernels::in_memory(&tight);
    assert_eq!(kernels.layout(GgmlType::Q4_0), WeightLayout::Repacked);
}

#[test]
fn blocks_begin_where_they_are_faster() {
    let (table, offered) = (measured(), offered());
    let repacked = ExpertKernels::with(
        &facts(Some(&table), &offered, (512, 1, 4096)),
        vec![TypeLayout { quantisation: "q4_0".into(), layout: WeightLayout::Repacked }],
    );
    assert_eq!(repacked.blocks_from_rows, Some(16.0));
    // 16 rows for each of 128 experts: 256 tokens.
    let from = repacked.from_tokens(128, 8);
    assert!((200..=256).contains(&from), "{from}");
    assert_eq!(repacked.block_rows, 64, "the knee");
    let amx = ExpertKernels::in_memory(&facts(Some(&table), &offered, (512, 2048, 256)));
    assert_eq!((amx.blocks_from_rows, amx.from_tokens(128, 8)), (Some(0.0), 1));
    let plain = ExpertKernels::in_file_order(&facts(Some(&table), &offered, (512, 2048, 1)));
    assert_eq!(plain.blocks_from_rows, Some(4.0));
    assert_eq!(plain.layout(GgmlType::Q4_0), WeightLayout::Plain);
}

#[test]
fn plain_weights_are_rearranged_where_that_pays() {
    use KernelWay::{Blocks, Rearranged, Whole};
    let mut table = measured();
    // 1,600 µs to rearrange, then as fast as laid out so.
    let us = [1_850.0, 2_050.0, 2_250.0, 3_200.0, 7_300.0];
    table.experts.push(cost(WeightLayout::Plain, Rearranged, us));
    let offered = offered();
    let from = |table: &Table, offered: &[OfferedLayouts]| {
        let facts = facts(Some(table), offered, (512, 2048, 1));
        ExpertKernels::in_file_order(&facts).rearranged_from_rows
    };
    // At 4 rows 800 beside 2,050 µs, at 16 rows 2,400 beside 2,250.
    assert_eq!(from(&table, &offered), Some(15));
    assert_eq!(from(&measured(), &offered), None, "nobody measured");
    let plain = vec![(WeightLayout::Plain, 1000)];
    let only = [OfferedLayouts { layouts: plain, ..offered[0].clone() }];
    assert_eq!(from(&table, &only), None, "nothing to rearrange into");
    // As of MXFP4: blocks alone are never faster than the whole, rearranged ones are.
    let whole = [230.0, 700.0, 2_300.0, 7_900.0, 30_000.0];
    table.experts.retain(|cost| (cost.layout, cost.way) != (WeightLayout::Plain, Whole));
    table.experts.push(cost(WeightLayout::Plain, Whole, whole));
    let known = facts(Some(&table), &offered, (512, 2048, 1));
    let kernels = ExpertKernels::in_file_order(&known);
    assert_eq!((kernels.blocks_from_rows, kernels.rearranged_from_rows), (Some(16.0), Some(15)));
    // In memory the layout itself is chosen.
    let known = facts(Some(&table), &offered, (512, 2048, 256));
    assert_eq!(ExpertKernels::in_memory(&known).rearranged_from_rows, None);
    assert_eq!(ExpertKernels::exact().rearranged_from_rows, None);
    table.experts.retain(|cost| (cost.layout, cost.way) != (WeightLayout::Plain, Blocks));
    assert_eq!(from(&table, &offered), None, "nothing to compare with");
}

#[test]
fn of_several_types_the_last_decides() {
    let offered = offered();
    let of = |name: &str, layout| TypeLayout { quantisation: name.into(), layout };
    let mut table = measured();
    for way in [KernelWay::Whole, KernelWay::Blocks] {
        let us = if way == KernelWay::Whole { 1.0 } else { 1.1 };
        let cost = cost(WeightLayout::Plain, way, [us, 4.0 * us, 16.0, 64.0, 256.0]);
        table.experts.push(ExpertCost { quantisation: "q6_K".into(), ..cost });
    }
    let facts = facts(Some(&table), &offered, (512, 512, 64));
    let plain = of("q4_0", WeightLayout::Plain);
    let from = |layouts| ExpertKernels::with(&facts, layouts).blocks_from_rows;
    let other = of("q6_K", WeightLayout::Plain);
    assert_eq!(from(vec![plain.clone()]), Some(4.0));
    assert_eq!(from(vec![plain, other.clone()]), Some(16.0));
    // Layers of the other type are not claimed before, although the first is apart.
    assert_eq!(from(vec![of("q4_0", WeightLayout::Amx), other]), Some(16.0));
}

#[test]
fn a_way_that_is_never_faster_is_never_taken() {
    let whole = cost(WeightLayout::Plain, KernelWay::Whole, [1.0, 2.0, 3.0, 4.0, 5.0]);
    let blocks = ExpertCost { way: KernelWay::Blocks, ..whole.clone() };
    let slower = cost(WeightLayout::Plain, KernelWay::Blocks, [1.0, 2.0, 3.0, 4.0, 5.1]);
    assert_eq!(crossing(&whole, &blocks), Some(1.0));
    assert_eq!(crossing(&whole, &slower), None);
    assert_eq!(ExpertKernels::exact().from_tokens(128, 8), u32::MAX);
}

#[test]
fn without_measurements_the_most_specialised_layout_is_taken() {
    let offered = offered();
    let kernels = ExpertKernels::in_memory(&facts(None, &offered, (512, 512, 256)));
    assert_eq!(kernels.layout(GgmlType::Q4_0), WeightLayout::Amx);
    let nothing = ExpertKernels::in_memory(&facts(None, &[], (512, 512, 256)));
    assert_eq!(nothing, ExpertKernels::default());
}
