//! Feeds the lines of a text file that hold data to the CSV parser, and remembers where they were.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

/// Detected or chosen way to split a line into fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delimiter {
    /// One given byte.
    Byte(u8),
    /// Any run of spaces and tabs.
    Blanks,
}

/// The lines of a text file without blank lines, comments, byte order mark and carriage returns.
///
/// As a [`Read`] it gives each remaining line with a `\n`; [`ContentLines::line_in_file`] tells
/// which line of the file it was.
pub(crate) struct ContentLines<R> {
    reader: R,
    delimiter: Delimiter,
    /// Lines found but not yet given, with nothing but the line itself.
    waiting: VecDeque<Vec<u8>>,
    /// The line being given, and how much of it has been.
    current: Vec<u8>,
    given: usize,
    /// Lines of the file seen so far, and how many of them were kept.
    seen: u64,
    kept: u64,
    /// Pairs (number among the kept lines, number in the file) after each gap.
    gaps: Vec<(u64, u64)>,
    bytes: u64,
    limit: u64,
    /// The last line ended in a carriage return, so a line feed that follows belongs to it.
    after_return: bool,
}

/// The error that tells that the input is longer than allowed.
#[derive(Debug, thiserror::Error)]
#[error("more bytes than allowed")]
struct OverLimit;

/// Whether a failure to read means that the input is longer than allowed.
pub(crate) fn is_over_limit(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<OverLimit>())
}

impl<R: BufRead> ContentLines<R> {
    /// Reads as far as is needed to detect the delimiter, if none is given.
    pub(crate) fn new(reader: R, delimiter: Option<Delimiter>, limit: u64) -> io::Result<Self> {
        let mut lines = Self {
            reader,
            delimiter: Delimiter::Byte(b','),
            waiting: VecDeque::new(),
            current: Vec::new(),
            given: 0,
            seen: 0,
            kept: 0,
            gaps: Vec::new(),
            bytes: 0,
            limit,
            after_return: false,
        };
        // The second line tells more than the first, which may hold names with blanks in them.
        while lines.waiting.len() < 2 && lines.read_line()? {}
        let sample = lines.waiting.get(1).or(lines.waiting.front());
        lines.delimiter = match (delimiter, sample) {
            (Some(given), _) => given,
            (None, Some(sample)) => detect(sample),
            (None, None) => Delimiter::Byte(b','),
        };
        Ok(lines)
    }

    pub(crate) fn delimiter(&self) -> Delimiter {
        self.delimiter
    }

    /// The number in the file of kept line `kept`, both counted from 1.
    pub(crate) fn line_in_file(&self, kept: u64) -> u64 {
        let after = self.gaps.partition_point(|&(first, _)| first <= kept);
        match after.checked_sub(1).and_then(|place| self.gaps.get(place)) {
            Some(&(first, line)) => line + (kept - first),
            None => kept,
        }
    }

    /// Reads one line of the file and queues it if it holds data; false at the end of the data.
    fn read_line(&mut self) -> io::Result<bool> {
        let Some(raw) = self.next_raw()? else {
            return Ok(false);
        };
        let mut line = raw.as_slice();
        if self.seen == 0 {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        self.seen += 1;
        let content = line.trim_ascii_start();
        if content.is_empty() || content[0] == b'#' {
            return Ok(true);
        }
        self.kept += 1;
        if self.line_in_file(self.kept) != self.seen {
            self.gaps.push((self.kept, self.seen));
        }
        self.waiting.push_back(line.to_vec());
        Ok(true)
    }

    /// The bytes up to the next line feed, carriage return or pair of both, without them.
    fn next_raw(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut raw = Vec::new();
        let mut any = false;
        loop {
            let available = match self.reader.fill_buf() {
                Ok(available) => available,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            if available.is_empty() {
                return Ok(any.then_some(raw));
            }
            if self.after_return {
                self.after_return = false;
                if available[0] == b'\n' {
                    self.used(1)?;
                    continue;
                }
            }
            any = true;
            let end = available.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let count = end.unwrap_or(available.len());
            raw.extend_from_slice(&available[..count]);
            let Some(end) = end else {
                self.used(count)?;
                continue;
            };
            self.after_return = available[end] == b'\r';
            self.used(end + 1)?;
            return Ok(Some(raw));
        }
    }

    /// Marks bytes of the input as used and counts them.
    fn used(&mut self, count: usize) -> io::Result<()> {
        self.reader.consume(count);
        self.bytes += count as u64;
        if self.bytes > self.limit {
            return Err(io::Error::other(OverLimit));
        }
        Ok(())
    }

    /// Makes the next line current; false at the end of the data.
    fn advance(&mut self) -> io::Result<bool> {
        while self.waiting.is_empty() {
            if !self.read_line()? {
                return Ok(false);
            }
        }
        let line = self.waiting.pop_front().unwrap_or_default();
        self.given = 0;
        self.current = match self.delimiter {
            Delimiter::Byte(_) => line,
            Delimiter::Blanks => squeeze(&line),
        };
        self.current.push(b'\n');
        Ok(true)
    }
}

impl<R: BufRead> Read for ContentLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.current.len() && !self.advance()? {
            return Ok(0);
        }
        let left = &self.current[self.given..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.given += count;
        Ok(count)
    }
}

/// Replaces each run of blanks by one space and drops those at both ends.
fn squeeze(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len() + 1);
    for word in line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(b' ');
        }
        out.extend_from_slice(word);
    }
    out
}

/// The delimiter that a line of data seems to use.
fn detect(line: &[u8]) -> Delimiter {
    let mut quoted = false;
    let outside: Vec<u8> = line
        .trim_ascii()
        .iter()
        .copied()
        .filter(|&byte| {
            quoted ^= byte == b'"';
            !quoted
        })
        .collect();
    for byte in [b';', b','] {
        if outside.contains(&byte) {
            return Delimiter::Byte(byte);
        }
    }
    // A tab at either end is a delimiter too, so the line is not trimmed here.
    if line.contains(&b'\t') && !outside.contains(&b' ') {
        return Delimiter::Byte(b'\t');
    }
    if outside.iter().any(u8::is_ascii_whitespace) {
        return Delimiter::Blanks;
    }
    Delimiter::Byte(b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_are_detected() {
        for (line, expected) in [
            ("1,2", Delimiter::Byte(b',')),
            ("1, 2", Delimiter::Byte(b',')),
            ("1,5;2,5", Delimiter::Byte(b';')),
            ("1\t2", Delimiter::Byte(b'\t')),
            ("1 2", Delimiter::Blanks),
            ("  1.0e+00   2 ", Delimiter::Blanks),
            ("1 \t2", Delimiter::Blanks),
            ("17", Delimiter::Byte(b',')),
            ("\"a;b\",2", Delimiter::Byte(b',')),
        ] {
            assert_eq!(detect(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn kept_lines_are_traced_back_to_the_file() {
        let text = b"\xef\xbb\xbf# c\r\n\r\n1,2\r\n3,4\n  # d\n\n\n5,6";
        let mut lines = ContentLines::new(&text[..], None, 1000).unwrap();
        let mut out = String::new();
        lines.read_to_string(&mut out).unwrap();
        assert_eq!(out, "1,2\n3,4\n5,6\n");
        let places: Vec<u64> = (1..=3).map(|kept| lines.line_in_file(kept)).collect();
        assert_eq!(places, [3, 4, 8]);
    }
}
