//! The commands, one file each.

mod evaluate;
mod init;
mod reproduce;
mod sample;
mod train;

use crate::args::{Args, Command};
use crate::error::CliError;
use crate::ui::Ui;
use clap::CommandFactory;

/// Runs a command.
pub fn run(command: Command, ui: &Ui) -> Result<(), CliError> {
    match command {
        Command::Train(args) => train::train(args, ui),
        Command::Resume(args) => train::resume(args, ui),
        Command::Sample(args) => sample::sample(args, ui),
        Command::Evaluate(args) => evaluate::evaluate(args, ui),
        Command::Init(args) => init::init(args, ui),
        Command::Reproduce(args) => reproduce::reproduce(args, ui),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Args::command(), "jarz", &mut std::io::stdout());
            Ok(())
        }
    }
}

/// Prints a value as JSON.
fn print_json(value: &impl serde::Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).map_err(|e| CliError::Message(e.to_string()))?;
    println!("{text}");
    Ok(())
}

/// A value with its error, for people.
fn plus_minus(value: f64, error: Option<f64>) -> String {
    match error.filter(|e| e.is_finite() && *e > 0.0) {
        Some(error) => {
            // Two digits of the error, and as many of the value.
            let digits = (1 - error.log10().floor() as i32).clamp(0, 12) as usize;
            format!("{value:.digits$} ± {error:.digits$}")
        }
        None => format!("{value:.4}"),
    }
}
