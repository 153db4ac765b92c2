//! Images as models take them: of a known kind, no larger than they say, no more bytes than they
//! take. Bytes in, bytes out; an image that cannot be read is left as it is.

use atomic_agent::{message::ImageContent, tool::FitImages};
use base64::{Engine, prelude::BASE64_STANDARD};
use image::{
    DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, codecs::jpeg::JpegEncoder,
    imageops::FilterType, metadata::Orientation,
};
use std::io::Cursor;

/// Pixels of the longer side.
const MAX_SIDE: u32 = 2000;
/// Of base64; providers refuse 5 MB.
const MAX_BASE64: usize = 4_500_000;
/// Bytes that models take without any of this.
pub const MOST_AS_IT_IS: u64 = 5 * 1024 * 1024 * 3 / 4;
/// What decoding may take: a small file can hold an enormous picture.
const MAX_DECODED: u64 = 512 * 1024 * 1024;
const QUALITIES: [u8; 4] = [85, 70, 55, 40];

/// Of the first bytes; `None`: no image that models take.
pub fn kind(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

pub fn content(bytes: &[u8], mime: &str) -> ImageContent {
    ImageContent { data: BASE64_STANDARD.encode(bytes), mime_type: mime.into(), extra: Default::default() }
}

/// The setting `images.autoResize`.
#[derive(Clone, Copy, Debug)]
pub struct Fit;

impl FitImages for Fit {
    fn fit(&self, image: &ImageContent) -> Option<(ImageContent, String)> {
        fit(image)
    }
}

/// Smaller, with a note that says how much; `None` when it fits, or nothing can be made of it.
pub fn fit(image: &ImageContent) -> Option<(ImageContent, String)> {
    let bytes = BASE64_STANDARD.decode(image.data.as_bytes()).ok()?;
    let format = match kind(&bytes)? {
        "image/png" => ImageFormat::Png,
        "image/jpeg" => ImageFormat::Jpeg,
        "image/gif" => ImageFormat::Gif,
        _ => ImageFormat::WebP,
    };
    let (width, height) = ImageReader::with_format(Cursor::new(&bytes), format).into_dimensions().ok()?;
    if width.max(height) <= MAX_SIDE && image.data.len() <= MAX_BASE64 {
        return None;
    }
    let mut reader = ImageReader::with_format(Cursor::new(&bytes), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODED);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().ok()?;
    // The note that a camera makes of how it was held is lost with the old bytes.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut picture = DynamicImage::from_decoder(decoder).ok()?;
    picture.apply_orientation(orientation);
    let (width, height) = (picture.width(), picture.height());
    let mut side = width.max(height).min(MAX_SIDE);
    loop {
        let small = match side < width.max(height) {
            true => picture.resize(side, side, FilterType::Triangle),
            false => picture.clone(),
        };
        if let Some((bytes, mime)) = encoded(&small, format) {
            let note = format!(
                "[image of {width}x{height}, shown as {}x{}: multiply coordinates by {:.2}]",
                small.width(),
                small.height(),
                f64::from(width) / f64::from(small.width().max(1)),
            );
            return Some((ImageContent { extra: image.extra.clone(), ..content(&bytes, mime) }, note));
        }
        side = side * 3 / 4;
        if side < 64 {
            return None;
        }
    }
}

/// In few enough bytes: exactly, if it was exact before and that is possible.
fn encoded(picture: &DynamicImage, was: ImageFormat) -> Option<(Vec<u8>, &'static str)> {
    let fits = |bytes: &Vec<u8>| bytes.len().div_ceil(3) * 4 <= MAX_BASE64;
    if was != ImageFormat::Jpeg {
        let mut bytes = Vec::new();
        picture.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).ok()?;
        if fits(&bytes) {
            return Some((bytes, "image/png"));
        }
    }
    let plain = DynamicImage::ImageRgb8(picture.to_rgb8());
    QUALITIES.into_iter().find_map(|quality| {
        let mut bytes = Vec::new();
        plain.write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, quality)).ok()?;
        fits(&bytes).then_some((bytes, "image/jpeg"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{Rgb, RgbImage};
    use proptest::prelude::*;

    fn png(width: u32, height: u32) -> ImageContent {
        let picture = RgbImage::from_fn(width, height, |x, y| Rgb([(x % 256) as u8, (y % 256) as u8, 7]));
        let mut bytes = Vec::new();
        DynamicImage::ImageRgb8(picture).write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).unwrap();
        content(&bytes, "image/png")
    }
    fn size(image: &ImageContent) -> (u32, u32) {
        let bytes = BASE64_STANDARD.decode(&image.data).unwrap();
        ImageReader::new(Cursor::new(bytes)).with_guessed_format().unwrap().into_dimensions().unwrap()
    }

    #[test]
    fn a_large_image_is_made_smaller_and_says_by_how_much() {
        let (small, note) = fit(&png(3000, 600)).unwrap();
        assert_eq!((size(&small), small.mime_type.as_str()), ((2000, 400), "image/png"));
        assert_eq!(note, "[image of 3000x600, shown as 2000x400: multiply coordinates by 1.50]");
    }

    #[test]
    fn one_that_fits_and_one_that_is_none_stay_as_they_are() {
        assert_eq!(fit(&png(40, 30)), None);
        for bytes in [b"\x89PNG\r\n\x1a\n\0".as_slice(), b"GIF8", b"text", b""] {
            assert_eq!(fit(&content(bytes, "image/png")), None);
        }
        let broken = ImageContent { data: "no base64!".into(), ..png(1, 1) };
        assert_eq!(fit(&broken), None);
    }

    #[test]
    fn many_bytes_become_fewer() {
        // Noise, so that nothing can be saved without loss.
        let mut seed = 1u32;
        let picture = RgbImage::from_fn(1400, 1400, |_, _| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [a, b, c, _] = seed.to_be_bytes();
            Rgb([a, b, c])
        });
        let mut bytes = Vec::new();
        DynamicImage::ImageRgb8(picture).write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).unwrap();
        assert!(bytes.len() > MAX_BASE64);
        let (small, _) = fit(&content(&bytes, "image/png")).unwrap();
        assert!(small.data.len() <= MAX_BASE64 && small.mime_type == "image/jpeg");
    }

    proptest! {
        #[test]
        fn any_bytes_behind_any_magic_are_survived(magic in 0usize..4, tail in prop::collection::vec(any::<u8>(), 0..200)) {
            let magics: [&[u8]; 4] = [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF\0\0\0\0WEBP"];
            let bytes = [magics[magic], &tail].concat();
            let _ = fit(&content(&bytes, "image/png"));
        }
    }
}
