//! What doctor says about whole machines, from the fixtures of `host`.

use std::path::Path;

use expect_test::{Expect, expect};
use motley_calibrate::doctor::{Build, Calibrated, DirectIo, Facts, Known, Sandbox, State, advise};
use motley_testkit::machine_tree::Tree;

fn build(unused: &[&str]) -> Build {
    Build {
        kernels: None,
        used_instructions: vec!["AVX2".into(), "AVX512".into(), "FMA".into()],
        unused_instructions: unused.iter().map(|name| (*name).to_owned()).collect(),
        instructions_hint: (!unused.is_empty()).then(|| "build with clang 16".into()),
        gpus: Vec::new(),
    }
}

fn known(build: Build, direct_io: DirectIo) -> Known {
    let sandbox = Sandbox { landlock_abi: Some(7), seccomp: true };
    Known { build, direct_io, calibration: None, gpu_meters: Vec::new(), sandbox }
}

fn check(name: &str, path: &str, build: Build, expected: Expect) {
    let tree = Tree::fixture(name);
    let facts = Facts::read(tree.root(), Path::new(path), known(build, DirectIo::Works));
    let root = tree.root().display().to_string();
    let mut text = String::new();
    for line in advise(&facts) {
        let mark = match line.state {
            State::Good => "+",
            State::Limited => "~",
            State::Missing => "-",
        };
        let advice = line.advice.map_or(String::new(), |advice| format!("\n    > {advice}"));
        text += &format!("{mark} {}: {}{advice}\n", line.topic, line.found).replace(&root, "");
    }
    expected.assert_eq(&text);
}

#[test]
fn a_laptop_on_battery_with_a_gpu_the_build_does_not_use() {
    check(
        "hybrid-laptop",
        "/models",
        build(&[]),
        expect![[r#"
            + Processor: Intel(R) Core(TM) Ultra 7 155H: 6 fast at 5.00 GHz + 8 small at 3.80 GHz + 2 small at 2.50 GHz cores (22 threads), L3 24.0 MiB
            + Instructions: AVX512, AVX2 used
            + Load: 0.42 on 16 cores over the last minute
            + Memory: 20.0 GiB of 31.0 GiB free for Motley
            + Pressure: tasks waited for memory 0.1 % of the last 10 s
            + Huge pages: transparent, madvise
            + Disk: NVMe (nvme0n1), btrfs at /
            + Direct reads: work: experts come past the page cache
            - GPU: Intel (i915), NVIDIA (nvidia); not used by this build
                > build with --features cuda (or vulkan)
            - NPU: Intel (intel_vpu); not used by this build
            ~ Power: battery, 64 % left
                > processors clock lower on battery; plug in to measure speed
            + Energy meter: battery BAT0
            - Calibration: plans use estimates
                > motley calibrate (a minute on an idle machine)
            + Sandbox: files by Landlock (ABI 7), system calls by seccomp
        "#]],
    );
}

#[test]
fn a_container_on_a_busy_server() {
    check(
        "two-socket-server",
        "/models",
        build(&["AMX_INT8"]),
        expect![[r#"
            + Processor: Intel(R) Xeon(R) Gold 6430: 32 fast at 4.10 GHz + 32 fast at 4.10 GHz cores (128 threads) in 2 sockets, L3 120.0 MiB
            ~ Instructions: AVX512, AVX2 used; AMX_INT8 unused
                > build with clang 16
            ~ Load: 41.00 on 64 cores over the last minute
                > other work slows every thread down: wait for it, or run --threads 23
            ~ Memory: 60.0 GiB of 502.6 GiB free for Motley; a control group allows 64.0 GiB
                > raise the container's or the service's memory limit to use more
            ~ Memory nodes: 2 nodes; each keeps a part of the experts in memory
                > when a model fits one node: numactl --cpunodebind=0 --membind=0 motley …
            ~ Pressure: tasks waited for memory 12.5 % of the last 10 s
                > close something, or give Motley less: --memory SIZE
            ~ Huge pages: switched off
                > echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled
            + Disk: NVMe (nvme0n1), xfs at /models
            + Direct reads: work: experts come past the page cache
            - GPU: none shown
            - NPU: none shown
            + Power: mains
            + Energy meter: RAPL package-0, package-1
            - Calibration: plans use estimates
                > motley calibrate (a minute on an idle machine)
            + Sandbox: files by Landlock (ABI 7), system calls by seccomp
        "#]],
    );
}

#[test]
fn a_phone() {
    check(
        "meizu-21",
        "/data/models",
        build(&[]),
        expect![[r#"
            + Processor: A520 + A720 + X4: 1 fast at 3.30 GHz + 3 middle at 3.15 GHz + 2 middle at 2.96 GHz + 2 small at 2.27 GHz cores
            + Instructions: AVX512, AVX2 used
            ~ Load: 3.05 on 8 cores over the last minute
                > other work slows every thread down: wait for it, or run --threads 4
            + Memory: 5.7 GiB of 11.4 GiB free for Motley
            - Pressure: not reported by the kernel
                > start the kernel with psi=1; without it Motley cannot give memory back in time
            - Huge pages: none in this kernel
            + Disk: unknown kind, f2fs at /data
            + Direct reads: work: experts come past the page cache
            - GPU: Qualcomm (kgsl); not used by this build
                > build with --features vulkan
            - NPU: Qualcomm (fastrpc); not used by this build
            ~ Power: battery, 72 % left
                > processors clock lower on battery; plug in to measure speed
            + Energy meter: battery battery
            - Calibration: plans use estimates
                > motley calibrate (a minute on an idle machine)
            + Sandbox: files by Landlock (ABI 7), system calls by seccomp
        "#]],
    );
}

#[test]
fn a_package_names_the_kernels_it_chose() {
    let tree = Tree::new(&[]);
    let build = Build { kernels: Some("haswell".into()), ..build(&[]) };
    let facts = Facts::read(tree.root(), Path::new("/"), known(build, DirectIo::Untried));
    let lines = advise(&facts);
    let line = lines.iter().find(|line| line.topic == "Instructions").unwrap();
    assert_eq!(line.found, "AVX512, AVX2 used (kernels for haswell, chosen at start)");
}

#[test]
fn a_system_that_tells_nothing() {
    let tree = Tree::new(&[]);
    let facts = Facts::read(tree.root(), Path::new("/"), known(build(&[]), DirectIo::Untried));
    let lines = advise(&facts);
    let memory = lines.iter().find(|line| line.topic == "Memory").unwrap();
    assert_eq!(memory.state, State::Missing);
    assert!(memory.advice.as_ref().is_some_and(|advice| advice.contains("--memory")));
    assert!(facts.cores >= 1);
}

#[test]
fn facts_are_json_with_units_in_their_names() {
    let tree = Tree::fixture("two-socket-server");
    let facts = Facts::read(tree.root(), Path::new("/"), known(build(&[]), DirectIo::Refused));
    let json = serde_json::to_value(&facts).unwrap();
    assert_eq!(json["memory"]["limit_bytes"], 64_u64 << 30);
    assert_eq!(json["clusters"][0]["role"], "prime");
    assert_eq!(json["direct_io"], "refused");
    let direct = advise(&facts).into_iter().find(|line| line.topic == "Direct reads").unwrap();
    assert_eq!(direct.state, State::Limited);
}

#[test]
fn a_calibration_under_load_is_reported() {
    let tree = Tree::fixture("small-vm");
    let of = |load| {
        let made = Calibrated {
            date: "2026-01-31T12:00:00Z".into(),
            load_one_min: Some(load),
            quick: false,
        };
        let known = Known { calibration: Some(made), ..known(build(&[]), DirectIo::Works) };
        let lines = advise(&Facts::read(tree.root(), Path::new("/"), known));
        lines.into_iter().find(|line| line.topic == "Calibration").unwrap()
    };
    assert_eq!(of(0.1).state, State::Good);
    assert_eq!(of(1.5).state, State::Limited);
    assert!(of(1.5).advice.unwrap().contains("motley calibrate"));
}

#[test]
fn what_a_kernel_lets_be_given_up_is_said() {
    let tree = Tree::fixture("hybrid-laptop");
    let found = |landlock_abi, seccomp| {
        let sandbox = Sandbox { landlock_abi, seccomp };
        let known = Known { sandbox, ..known(build(&[]), DirectIo::Works) };
        let facts = Facts::read(tree.root(), Path::new("/models"), known);
        let line = advise(&facts).into_iter().find(|line| line.topic == "Sandbox").unwrap();
        assert_eq!(line.advice.is_some(), line.state != State::Good, "{line:?}");
        (line.state, line.found)
    };
    assert_eq!(found(Some(4), true).0, State::Good);
    let (state, half) = found(None, true);
    assert!(state == State::Limited && half.contains("files are not restricted"), "{half}");
    let (state, other) = found(Some(4), false);
    assert!(state == State::Limited && other.contains("calls are not restricted"), "{other}");
    assert_eq!(found(None, false).0, State::Missing);
}
