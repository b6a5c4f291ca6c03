//! The framing of TensorFlow records: length, its checksum, the bytes, their checksum.

/// A record that holds `bytes`.
pub(super) fn framed(bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u64).to_le_bytes();
    [&length[..], &masked(&length), bytes, &masked(bytes)].concat()
}

/// A checksum, changed in the prescribed way so that a checksum of bytes that hold checksums stays a good one.
fn masked(bytes: &[u8]) -> [u8; 4] {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// CRC-32C (Castagnoli), as in RFC 3720.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| (crc >> 8) ^ TABLE[usize::from(crc as u8 ^ byte)])
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            // The polynomial 0x1EDC6F41, bits reversed.
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 3720, appendix B.4, and the check value of the CRC catalogue.
    #[test]
    fn published_checksums() {
        let ascending: Vec<u8> = (0..32).collect();
        let descending: Vec<u8> = (0..32).rev().collect();
        let command: [u8; 48] = [
            0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0, 0, 0, 0,
            0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0,
        ];
        let cases: [(&[u8], u32); 6] = [
            (&[0; 32], 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&ascending, 0x46dd_794e),
            (&descending, 0x113f_db5c),
            (&command, 0xd996_3a56),
            (b"123456789", 0xe306_9283),
        ];
        for (bytes, crc) in cases {
            assert_eq!(crc32c(bytes), crc, "{bytes:02x?}");
        }
    }

    #[test]
    fn frames_hold_their_bytes() {
        let frame = framed(b"123456789");
        assert_eq!(frame.len(), 8 + 4 + 9 + 4);
        assert_eq!((&frame[..8], &frame[12..21]), (&9u64.to_le_bytes()[..], &b"123456789"[..]));
        // 0xe3069283 turned right by 15 bits is 0x2507c60d; plus 0xa282ead8.
        assert_eq!(frame[21..], 0xc78a_b0e5u32.to_le_bytes());
    }
}
