//! Writes the reproductions of published results to a folder: `reproduce docs/reproduction`.

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).map_or_else(|| "docs/reproduction".into(), PathBuf::from);
    std::fs::create_dir_all(&folder)?;
    for document in motley_sim::reproduce::all()? {
        std::fs::write(folder.join(format!("{}.md", document.name)), &document.markdown)?;
        for picture in &document.pictures {
            std::fs::write(folder.join(&picture.name), &picture.svg)?;
        }
        println!("{}\n{}", document.name, document.markdown);
    }
    Ok(())
}
