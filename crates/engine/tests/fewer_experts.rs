//! Fewer experts per token: the same bits as a file that says fewer, mapped and from disk, and with
//! the model's own number the same bits as without it.

use motley_engine::{
    Engine, EngineError, EngineOptions, Loading, Runtime, Seam, SessionOptions, ThreadSet,
    ThreadSets,
};
use motley_testkit::synth::Arch;
use std::path::{Path, PathBuf};

/// Experts per token of the model.
const OWN: u32 = 4;
const FEWER: u32 = 2;
const DECODED: i32 = 8;

fn load(model: &Path, loading: Loading, used: Option<u32>) -> Result<Engine, EngineError> {
    let options = EngineOptions {
        loading,
        repack: false,
        experts_used: used,
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        ..EngineOptions::default()
    };
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    Engine::load(runtime, model, &options, &mut |_| true)
}

/// Experts per token as the engine knows them, and all logits.
fn logits(model: &Path, loading: Loading, used: Option<u32>) -> (u32, Vec<Vec<f32>>) {
    let engine = load(model, loading, used).expect("the model loads");
    let shape = SessionOptions { context_tokens: 256, chunk_tokens: 64, ..Default::default() };
    let mut session = engine.session(&shape).expect("a session");
    session.prefill(&(100..117).collect::<Vec<_>>()).expect("a prompt");
    let mut all = vec![session.logits().to_vec()];
    for token in 0..DECODED {
        session.decode(200 + token).expect("a token");
        all.push(session.logits().to_vec());
    }
    (engine.spec().used, all)
}

/// A copy of the model whose header says fewer.
fn rewritten(model: &Path, folder: &Path) -> PathBuf {
    const KEY: &[u8] = b"qwen3moe.expert_used_count";
    const U32: [u8; 4] = 4_u32.to_le_bytes();
    let mut bytes = std::fs::read(model).expect("it reads");
    let key = bytes.windows(KEY.len()).position(|window| window == KEY).expect("the key");
    let value = key + KEY.len() + U32.len();
    assert_eq!(bytes[key + KEY.len()..value], U32);
    assert_eq!(bytes[value..value + 4], OWN.to_le_bytes());
    bytes[value..value + 4].copy_from_slice(&FEWER.to_le_bytes());
    let path = folder.join("fewer.gguf");
    std::fs::write(&path, bytes).expect("it is written");
    path
}

fn says_what_a_file_would(loading: Loading) {
    let Some(model) = motley_testkit::fixtures::synthetic(Arch::Qwen3moe) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = rewritten(&model, folder.path());
    let as_it_is = logits(&model, loading, None);
    assert_eq!(as_it_is.0, OWN);
    assert!(logits(&model, loading, Some(OWN)) == as_it_is, "its own number changes nothing");
    let fewer = logits(&model, loading, Some(FEWER));
    assert_eq!(fewer.0, FEWER);
    assert!(fewer == logits(&file, loading, None), "as a file that says fewer");
    assert!(fewer.1 != as_it_is.1, "fewer experts say something else");
}

#[test]
fn mapped_it_says_what_a_file_with_fewer_would() {
    says_what_a_file_would(Loading::Mapped);
}

#[test]
fn from_disk_it_says_what_a_file_with_fewer_would() {
    says_what_a_file_would(Loading::OnDemand);
}

#[test]
fn a_number_that_cannot_be_is_refused_with_the_flag_and_the_file() {
    let Some(model) = motley_testkit::fixtures::synthetic(Arch::Qwen3moe) else { return };
    for wrong in [0, OWN + 1] {
        let refused = load(&model, Loading::Mapped, Some(wrong)).err().expect("a refusal");
        let said = refused.to_string();
        assert!(
            said.contains(&format!("--experts {wrong}: a token of this model uses 4")),
            "{said}"
        );
        assert!(said.contains(model.to_str().expect("UTF-8")), "{said}");
    }
}
