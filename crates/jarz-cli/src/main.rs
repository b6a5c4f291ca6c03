//! The command line of Jarz: arguments and glue, no algorithm.

mod args;
mod commands;
mod error;
mod figures;
mod runs_figure;
mod ui;

use clap::Parser;
use error::CliError;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let ui = ui::Ui { quiet: args.quiet, json: args.json };
    if let Err(e) = ui::catch_interrupts() {
        ui.warn(&format!(
            "Ctrl-C cannot be caught ({e}); stopping loses what came after the last checkpoint"
        ));
    }
    match commands::run(args.command, &ui) {
        Ok(()) => ExitCode::SUCCESS,
        Err(CliError::Interrupted(text)) => {
            eprintln!("{text}");
            ExitCode::from(130)
        }
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}
