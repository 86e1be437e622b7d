//! The checked-in Rust of `worker.proto` is what its generator writes. After a change of the schema:
//! `UPDATE_EXPECT=1 cargo test -p motley-wire --test proto`.

use expect_test::expect_file;

#[test]
fn the_checked_in_code_is_of_this_schema() {
    let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
    let schema = protox::compile(["worker.proto"], [proto]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    tonic_prost_build::configure()
        .build_transport(false)
        .out_dir(folder.path())
        .compile_fds(schema)
        .unwrap();
    let written = std::fs::read_to_string(folder.path().join("motley.worker.v1.rs")).unwrap();
    expect_file!["../proto/motley.worker.v1.inc"].assert_eq(&written);
}
