//! Captures that are compressed by gzip or Zstandard, recognised by their first bytes, whatever their name.
//!
//! Both are unpacked by libraries in this process, and not by the programs of those names: an NF in a process of its
//! own may not start others. Memory is bounded by the formats: 32 KiB for gzip, up to 100 MiB for Zstandard, which its
//! encoder asks for only with `--long`. A file of several members or frames (`pigz`, `pzstd`, `cat a.gz b.gz`) is one
//! capture. Of a damaged Zstandard file, the frames of up to one window in front of the damage (2 MiB by default) are
//! missing: the library yields them only when more follows. Layers of images are recognised and unpacked by the same
//! ([`Compression::of`], [`ZstdFrames`]).

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, BufReader, Read};

/// The first bytes of a Zstandard frame, and of one that only its writer understands: the lowest four bits vary.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const ZSTD_SKIPPABLE: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];

/// How a file is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    /// By gzip.
    Gzip,
    /// By Zstandard.
    Zstandard,
}

impl Compression {
    /// The compression whose files start with these bytes.
    pub fn of(head: &[u8]) -> Option<Compression> {
        match head {
            [0x1f, 0x8b, 8, ..] => Some(Compression::Gzip),
            _ if head.starts_with(&ZSTD_MAGIC) => Some(Compression::Zstandard),
            [first, rest @ ..]
                if first & 0xf0 == ZSTD_SKIPPABLE[0] && rest.starts_with(&ZSTD_SKIPPABLE[1..]) =>
            {
                Some(Compression::Zstandard)
            }
            _ => None,
        }
    }

    /// The uncompressed bytes of a source.
    pub(super) fn unpack(self, source: impl Read + Send + 'static) -> Box<dyn Read + Send> {
        match self {
            Compression::Gzip => Box::new(Unpacked(MultiGzDecoder::new(source))),
            Compression::Zstandard => Box::new(Unpacked(ZstdFrames::new(source))),
        }
    }
}

/// What a file is compressed by that is not read here, by its first bytes: the remedy, too.
pub(super) fn unread(head: &[u8]) -> Option<&'static str> {
    match head {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some("it is compressed by xz: unpack it with `xz -dk`"),
        [b'B', b'Z', b'h', ..] => Some("it is compressed by bzip2: unpack it with `bzip2 -dk`"),
        [0x04, 0x22, 0x4d, 0x18, ..] => Some("it is compressed by LZ4: unpack it with `lz4 -d`"),
        [b'P', b'K', 3, 4, ..] => Some("it is a ZIP archive: unpack it with `unzip`"),
        _ => None,
    }
}

/// Tells damage of a file from what the system refused: each library has kinds of its own for damage.
struct Unpacked<R>(R);

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out).map_err(|error| match error.raw_os_error() {
            None if error.kind() != io::ErrorKind::Interrupted => {
                let message = format!("the compressed file is damaged, or its end is missing ({error})");
                io::Error::new(io::ErrorKind::InvalidData, message)
            }
            _ => error,
        })
    }
}

/// The frames of a Zstandard file, one after the other. The library decodes one at a time.
pub struct ZstdFrames<R> {
    source: BufReader<R>,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: Read> ZstdFrames<R> {
    /// Decodes all frames of a source.
    pub fn new(source: R) -> ZstdFrames<R> {
        ZstdFrames { source: BufReader::new(source), decoder: FrameDecoder::new(), in_frame: false }
    }

    /// Begins the next frame, past those that have no content; false at the end.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    if io::copy(&mut self.source.by_ref().take(length), &mut io::sink())? < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }

    /// The decoded bytes of this frame; none at its end.
    fn decode(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
            self.decoder
                .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                .map_err(io::Error::other)?;
        }
        let read = self.decoder.read(out)?;
        let (stated, found) = (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum());
        if read == 0 && stated.is_some() && stated != found {
            return Err(io::Error::other("the checksum of a frame is wrong"));
        }
        Ok(read)
    }
}

impl<R: Read> Read for ZstdFrames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while !out.is_empty() {
            if !self.in_frame {
                self.in_frame = self.begin()?;
                if !self.in_frame {
                    break;
                }
            }
            match self.decode(out)? {
                0 => self.in_frame = false,
                read => return Ok(read),
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::CaptureReader;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    fn office() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../examples/captures/office.pcap")
    }

    /// What a program makes of a file; nothing where it is not installed.
    fn packed(program: &str, arguments: &[&str]) -> Option<Vec<u8>> {
        let mut command = Command::new(program);
        let run = command.args(arguments).arg("-c").arg(office()).stderr(Stdio::null()).output();
        match run {
            Ok(run) => {
                assert!(run.status.success(), "{program}");
                Some(run.stdout)
            }
            Err(_) => {
                eprintln!("SKIP: {program} is not installed");
                None
            }
        }
    }

    /// The frames of a capture, and how it ended.
    fn frames(mut reader: CaptureReader) -> (Vec<Vec<u8>>, CaptureReader, Option<String>) {
        let mut frames = vec![];
        loop {
            match reader.next_frame() {
                Ok(Some(frame)) => frames.push(frame.bytes.to_vec()),
                Ok(None) => return (frames, reader, None),
                Err(error) => return (frames, reader, Some(error.to_string())),
            }
        }
    }

    fn of_stream(bytes: &[u8]) -> (Vec<Vec<u8>>, Option<String>) {
        match CaptureReader::from_stream("stream", io::Cursor::new(bytes.to_vec())) {
            Ok(reader) => {
                let (frames, _, error) = frames(reader);
                (frames, error)
            }
            Err(error) => (vec![], Some(error.to_string())),
        }
    }

    const PROGRAMS: [(&str, &[&str]); 2] = [("gzip", &["-9"]), ("zstd", &["-q", "--check"])];

    #[test]
    fn a_compressed_capture_has_the_same_frames_twice() {
        let (expected, ..) = frames(CaptureReader::open(office()).expect("the example"));
        assert_eq!(expected.len(), 3_443);
        let folder = tempfile::tempdir().expect("a folder");
        for (program, arguments) in PROGRAMS {
            let Some(bytes) = packed(program, arguments) else { continue };
            assert_eq!(of_stream(&bytes), (expected.clone(), None), "{program}");
            // Whatever its name.
            let path = folder.path().join("in.pcap");
            std::fs::write(&path, &bytes).expect("written");
            let (found, mut reader, error) = frames(CaptureReader::open(&path).expect("a capture"));
            assert_eq!((&found, error), (&expected, None), "{program}");
            for _ in 0..2 {
                assert!(reader.rewind().expect("a file"));
                let (again, now, error) = frames(reader);
                reader = now;
                assert_eq!((&again, error), (&expected, None), "{program}");
            }
        }
    }

    #[test]
    fn several_members_or_frames_are_one_capture() {
        let whole = std::fs::read(office()).expect("the example");
        let (expected, ..) = frames(CaptureReader::open(office()).expect("the example"));
        let halves = whole.split_at(whole.len() / 2);
        let gzip = |bytes: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
            io::Write::write_all(&mut encoder, bytes).expect("memory");
            encoder.finish().expect("memory")
        };
        assert_eq!(of_stream(&[gzip(halves.0), gzip(halves.1)].concat()), (expected.clone(), None));
        let zstd = |bytes: &[u8]| {
            ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
        };
        // With frames that have no content, as `pzstd` writes.
        let skippable = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let frames = [&skippable[..], &zstd(halves.0), &skippable, &zstd(halves.1), &skippable].concat();
        assert_eq!(of_stream(&frames), (expected, None));
    }

    #[test]
    fn of_a_damaged_file_whole_frames_are_used_and_the_damage_is_told() {
        let (expected, ..) = frames(CaptureReader::open(office()).expect("the example"));
        for (program, arguments) in PROGRAMS {
            let Some(bytes) = packed(program, arguments) else { continue };
            let (found, error) = of_stream(&bytes[..bytes.len() / 2]);
            // Of Zstandard, the library keeps the last window until the frame is whole: here, everything.
            assert!(expected.starts_with(&found) && (program == "zstd" || !found.is_empty()), "{program}");
            let error = error.expect("it is cut");
            assert!(error.contains("the compressed file is damaged, or its end is missing"), "{error}");
            for at in (4..bytes.len()).step_by(bytes.len() / 60) {
                let mut bytes = bytes.clone();
                bytes[at] ^= 0x55;
                // The checksum of the content finds what the format of captures lets pass. Headers have fields that
                // mean nothing here, such as a time.
                let (found, error) = of_stream(&bytes);
                assert!(error.is_some() || found == expected, "{program}: byte {at}");
            }
        }
    }

    #[test]
    fn what_is_compressed_otherwise_is_named() {
        for (head, name) in [
            (&b"\xfd7zXZ\0\0\x04"[..], "xz"),
            (b"BZh91AY&SY", "bzip2"),
            (b"\x04\x22\x4d\x18\x64", "LZ4"),
            (b"PK\x03\x04\x14", "ZIP"),
        ] {
            let (_, error) = of_stream(head);
            assert!(error.as_ref().is_some_and(|error| error.contains(name)), "{name}: {error:?}");
        }
    }
}
