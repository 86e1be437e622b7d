//! Calibrations as text: what is written is read again, what is wrong is named, and costs
//! scale to other shapes.

use motley_cost::calibration::{
    CalibrationError, CalibrationFile, DeviceCost, DiskCost, ExpertCost, FORMAT_VERSION, KernelWay,
    LinkCost, MAX_FILE_BYTES, MeasuredPoint, MemoryRate, Provenance, WeightLayout,
};
use motley_cost::{ComputeCost, ComputeSample, ExpertShape, Residuals};

const WAY: KernelWay = KernelWay::Whole;

fn residuals() -> Residuals {
    Residuals { samples: 8, rms: 1.5, worst_relative: 0.2, mean_relative: 0.05 }
}

fn expert(quantisation: &str, bits: f64, layout: WeightLayout, threads: u32) -> ExpertCost {
    ExpertCost {
        quantisation: quantisation.into(),
        bits_per_weight: bits,
        layout,
        way: WAY,
        threads,
        block_us: 4.0,
        launch_us: 2.0,
        us_per_mb: 50.0,
        us_per_mflop: 8.0,
        residuals: residuals(),
        other_shape_relative: Some(0.07),
        other_shape_points_relative: None,
        hidden: 2048,
        intermediate: 768,
        measured: vec![MeasuredPoint { tokens: 1, took_us: 140.0 }],
    }
}

fn small() -> CalibrationFile {
    CalibrationFile {
        version: FORMAT_VERSION,
        provenance: Provenance {
            date: "2026-01-31T12:00:00Z".into(),
            program: "motley 0.1.0".into(),
            cpu: "Some CPU".into(),
            cores: 4,
            instructions: vec!["AVX2".into()],
            load_one_min: Some(0.25),
            took_s: 40.5,
            quick: false,
        },
        machine: motley_machine::find("two-core-24gb").unwrap(),
        memory: vec![
            MemoryRate { threads: 1, gb_per_s: 11.0 },
            MemoryRate { threads: 4, gb_per_s: 30.0 },
        ],
        disk: Some(DiskCost {
            what: "ext4 on vda".into(),
            direct: true,
            backend: "uring".into(),
            in_flight: 4,
            gb_per_s: 1.2,
            latency_us: 150.0,
            alone_gb_per_s: 0.9,
            residuals: residuals(),
        }),
        links: vec![LinkCost {
            from: "CPU".into(),
            to: "CUDA0".into(),
            latency_us: 9.0,
            gb_per_s: 24.0,
            residuals: residuals(),
        }],
        devices: vec![DeviceCost {
            name: "CUDA0".into(),
            experts: vec![expert("q4_0", 4.5, WeightLayout::Plain, 1)],
        }],
        experts: vec![
            expert("q4_0", 4.5, WeightLayout::Plain, 1),
            expert("q4_0", 4.5, WeightLayout::Plain, 4),
            expert("q4_0", 4.5, WeightLayout::Repacked, 4),
            expert("f16", 16.0, WeightLayout::Plain, 4),
        ],
    }
}

#[test]
fn what_is_written_is_read_again() {
    let text = small().to_toml();
    assert_eq!(CalibrationFile::parse(&text, "x.toml").unwrap(), small());
    assert!(text.starts_with("motley_calibration = 2\n"), "{text}");
}

#[test]
fn the_nearest_measurement_is_found() {
    let small = small();
    let found = small.expert("q4_0", WeightLayout::Repacked, WAY, 2).unwrap();
    assert_eq!((found.layout, found.threads), (WeightLayout::Repacked, 4));
    assert_eq!(small.expert("q4_0", WeightLayout::Plain, WAY, 2).unwrap().threads, 1);
    let f16 = small.expert("f16", WeightLayout::Repacked, WAY, 4).unwrap();
    assert_eq!(f16.layout, WeightLayout::Plain, "the other layout rather than none");
    assert_eq!(small.expert("q5_K", WeightLayout::Plain, WAY, 4), None);
    let narrow = ExpertCost { hidden: 576, ..expert("q4_0", 4.5, WeightLayout::Plain, 1) };
    let both = CalibrationFile { experts: vec![small.experts[0].clone(), narrow], ..small.clone() };
    let near = |width| both.expert_near("q4_0", WeightLayout::Plain, WAY, 1, width).unwrap().hidden;
    assert_eq!((near(576.0 * 768.0), near(4096.0 * 1536.0)), (576, 2048));
    assert_eq!((small.memory_gb_per_s(3), small.memory_gb_per_s(64)), (Some(30.0), Some(30.0)));
}

#[test]
fn costs_scale_to_other_shapes_and_back() {
    let measured = ExpertShape::new(2048, 768, 4.5);
    let truth = ComputeCost { launch_us: 3.0, per_token_us: 20.0, floor_us: 160.0 };
    let sizes = [1, 2, 4, 8, 16, 64, 256];
    let samples = sizes.map(|tokens| ComputeSample { tokens, took_us: truth.us(tokens) });
    let fit = ComputeCost::fit_relative(&samples).unwrap();
    let (launch_us, us_per_mb, us_per_mflop) = ExpertCost::rates(&fit, &measured);
    let cost = ExpertCost {
        launch_us,
        us_per_mb,
        us_per_mflop,
        ..expert("q4_0", 4.5, WeightLayout::Plain, 1)
    };
    let same = cost.compute(&measured);
    assert!((same.us(1) / truth.us(1) - 1.0).abs() < 1e-6, "{same:?}");
    // Twice the width between: twice the bytes and operations, the same launch.
    let wide = cost.compute(&ExpertShape::new(2048, 1536, 4.5));
    assert!((wide.us(64) - wide.launch_us - 2.0 * (same.us(64) - same.launch_us)).abs() < 1e-6);
}

#[test]
fn points_are_joined_and_scaled() {
    let points = [(1, 100.0), (4, 130.0), (8, 290.0)];
    let measured = points.map(|(tokens, took_us)| MeasuredPoint { tokens, took_us }).to_vec();
    let cost = ExpertCost { measured, ..expert("q4_0", 4.5, WeightLayout::Plain, 1) };
    let same = ExpertShape::new(2048, 768, 4.5);
    let times = [0, 1, 2, 4, 6, 8, 16].map(|tokens| cost.points_us(&same, tokens));
    assert_eq!(times, [0.0, 100.0, 110.0, 130.0, 210.0, 290.0, 580.0]);
    assert_eq!(cost.points_us(&ExpertShape::new(4096, 768, 4.5), 4), 260.0);
    let mut unsorted = small();
    unsorted.experts[0].measured = vec![MeasuredPoint { tokens: 4, took_us: 1.0 }; 2];
    let error = CalibrationFile::parse(&unsorted.to_toml(), "x.toml").unwrap_err();
    assert!(error.to_string().contains("rising"), "{error}");
}

#[test]
fn what_is_wrong_is_named() {
    let text = small().to_toml();
    let error = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        CalibrationFile::parse(&text.replacen(from, to, 1), "x.toml").unwrap_err().to_string()
    };
    let version = error("motley_calibration = 2", "motley_calibration = 9");
    assert!(version.contains("run motley calibrate again"), "{version}");
    let rate = error("gb_per_s = 11.0", "gb_per_s = 0.0");
    assert_eq!(rate, "x.toml: gb_per_s = 0, but it must be above zero");
    let time = error("us_per_mb = 50.0", "us_per_mb = nan");
    assert!(time.contains("us_per_mb = NaN"), "{time}");
    assert!(error("launch_us = 2.0", "launch_ms = 2.0").contains("launch_ms"));
    // What the fuzz target `readers` asks for: every number, and the machine, are looked at.
    let point = error("took_us = 140.0", "took_us = nan");
    assert!(point.contains("took_us = NaN"), "{point}");
    assert!(error("latency_us = 9.0", "latency_us = -9.0").contains("link.latency_us = -9"));
    assert!(error("bits_per_weight = 4.5", "bits_per_weight = 0.0").contains("bits_per_weight"));
    assert!(error("took_s = 40.5", "took_s = inf").contains("provenance = inf"));
    assert!(error("rms = 1.5", "rms = nan").contains("residuals = NaN"));
    assert!(error("count = 1", "count = 0").contains("count = 0"));
    let long = CalibrationFile::parse(&" ".repeat(MAX_FILE_BYTES + 1), "x").unwrap_err();
    assert!(matches!(long, CalibrationError::TooLong { what: "bytes", .. }));
}
