//! Numbers for people.

/// A value with its error: two digits of the error, and as many of the value; four decimals without one.
///
/// ```
/// assert_eq!(jarz_view::plus_minus(6.7508, Some(0.0347)), "6.751 ± 0.035");
/// ```
pub fn plus_minus(value: f64, error: Option<f64>) -> String {
    match error.filter(|e| e.is_finite() && *e > 0.0) {
        Some(error) => {
            let digits = (1 - error.log10().floor() as i32).clamp(0, 12) as usize;
            format!("{value:.digits$} ± {error:.digits$}")
        }
        None => format!("{value:.4}"),
    }
}

/// The first ten of a list.
pub(crate) fn some_of(texts: impl ExactSizeIterator<Item = String>) -> String {
    let all = texts.len();
    let shown: Vec<String> = texts.take(10).collect();
    let rest = if shown.len() < all { format!(", ... ({all} in all)") } else { String::new() };
    shown.join(", ") + &rest
}
