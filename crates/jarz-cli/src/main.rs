//! The command line of Jarz: arguments and glue, no algorithm.

mod args;
mod commands;
mod error;
mod figures;
mod ui;

use clap::Parser;
use error::CliError;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let ui = ui::Ui { quiet: args.quiet, json: args.json };
    let views = matches!(args.command, args::Command::Serve(_) | args::Command::Watch(_));
    let word = "stopping after this iteration; press Ctrl-C again to stop at once";
    if let Err(e) = ui::catch_interrupts((!views).then_some(word)) {
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
