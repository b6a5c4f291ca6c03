//! Folders of PNG images.

use std::fs;
use std::path::{Path, PathBuf};

use super::{ImageError, Images, read_png};

/// What else might be meant as an image.
const OTHER_IMAGES: [&str; 8] = ["jpg", "jpeg", "gif", "bmp", "webp", "tif", "tiff", "ppm"];

/// All PNG images of a folder, in the order of their names.
///
/// If the folder holds sub-folders, each is a label, named as the sub-folder and numbered in the order of names; if it
/// holds the images themselves, they have no labels. Hidden files and files of other kinds are passed over, but not images
/// of other formats: those are refused.
pub fn read_png_folder(folder: impl AsRef<Path>) -> Result<Images, ImageError> {
    let folder = folder.as_ref();
    let (folders, files) = entries(folder)?;
    let mut reader = Reader::default();
    match (folders.is_empty(), files.is_empty()) {
        (false, false) => {
            let problem = "there are images beside sub-folders: move every image into the sub-folder of its \
                           label, or all of them into one folder without sub-folders";
            Err(ImageError::Folder { path: folder.into(), problem: problem.into() })
        }
        (true, _) => {
            reader.read(folder, files)?;
            reader.finish()
        }
        (false, true) => {
            if folders.len() > 256 {
                let problem = format!("{} sub-folders: at most 256 labels are possible", folders.len());
                return Err(ImageError::Folder { path: folder.into(), problem });
            }
            let (mut labels, mut names) = (Vec::new(), Vec::new());
            for (label, sub) in folders.iter().enumerate() {
                let count = reader.read(sub, entries(sub)?.1)?;
                labels.extend(vec![label as u8; count]);
                names.push(sub.file_name().unwrap_or_default().to_string_lossy().into_owned());
            }
            reader.finish()?.with_labels(labels, names)
        }
    }
}

#[derive(Default)]
struct Reader {
    first: Option<(PathBuf, [usize; 3])>,
    pixels: Vec<u8>,
}

impl Reader {
    /// Reads the images of one folder, and says how many there are.
    fn read(&mut self, folder: &Path, files: Vec<PathBuf>) -> Result<usize, ImageError> {
        if files.is_empty() {
            let advice = "put PNG files there, or remove the folder";
            return Err(ImageError::NoImages { path: folder.into(), advice });
        }
        for path in &files {
            let (shape, pixels) = read_png(path)?;
            let (first, expected) = self.first.get_or_insert_with(|| (path.clone(), shape));
            if shape != *expected {
                let (first, expected) = (first.clone(), describe(*expected));
                return Err(ImageError::Unequal {
                    path: path.clone(),
                    found: describe(shape),
                    first,
                    expected,
                });
            }
            self.pixels.extend(pixels);
        }
        Ok(files.len())
    }

    fn finish(self) -> Result<Images, ImageError> {
        Images::new(self.first.map_or([0; 3], |(_, shape)| shape), self.pixels)
    }
}

fn describe([height, width, channels]: [usize; 3]) -> String {
    let colour = if channels == 1 { "grey" } else { "in colour" };
    format!("{width} pixels wide, {height} high and {colour}")
}

/// Sub-folders and PNG files, each in the order of their names.
fn entries(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), ImageError> {
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    let failed = |e| ImageError::read(folder, e);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        if hidden {
            continue;
        } else if path.is_dir() {
            folders.push(path);
        } else if extension == "png" {
            files.push(path);
        } else if OTHER_IMAGES.contains(&extension.as_str()) {
            let problem = format!("an image in the format {extension}: convert it to PNG, or move it away");
            return Err(ImageError::Png { path, problem });
        }
    }
    folders.sort();
    files.sort();
    Ok((folders, files))
}
