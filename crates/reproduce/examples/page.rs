//! Writes the page of one source and its pictures, without the command line and what it links:
//! `cargo run --release -p motley-reproduce --example page -- tiers docs/reproduction [TRACE…]`.

use std::error::Error;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use motley_reproduce::{Source, tiers};
use motley_trace::Trace;
use motley_trace::import::bigmoe::BigmoeReader;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("which source, and into which folder?".into());
    };
    let source = Source::ALL.into_iter().find(|source| source.name() == name);
    let traces: Vec<Trace> = arguments.map(|path| read(&path)).collect::<Result<_, _>>()?;
    let document = match source.ok_or("no such source")? {
        Source::Tiers => {
            let rows = tiers::rows(motley_reproduce::machines::ASSUMED)?;
            tiers::document(&rows, &traces)?
        }
        other => other.document()?,
    };
    let folder = Path::new(&folder);
    fs::write(folder.join(format!("{}.md", document.name)), &document.markdown)?;
    for picture in &document.pictures {
        fs::write(folder.join(&picture.name), &picture.svg)?;
    }
    Ok(())
}

fn read(path: &str) -> Result<Trace, Box<dyn Error>> {
    let mut source = BigmoeReader::new(BufReader::new(File::open(path)?))?;
    Ok(Trace::collect(&mut source)?)
}
