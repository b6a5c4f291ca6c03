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
    let job = match jarz_mpi::Job::connect() {
        Ok(job) => job,
        Err(e) => {
            eprintln!("error: {e}");
            return ExitCode::FAILURE;
        }
    };
    let ranks = job.ranks();
    let first = ranks.is_first();
    let ui = ui::Ui { quiet: args.quiet || !first, json: args.json && first, silent: !first };
    let word = match args.command {
        _ if !first => None,
        args::Command::Serve(_) | args::Command::Watch(_) => None,
        _ if !ranks.is_alone() => Some(
            "stopping after this iteration, if all ranks are still there (one that dies ends the others)",
        ),
        args::Command::Data(_) | args::Command::Metrics(_) => {
            Some("stopping; press Ctrl-C again to stop at once")
        }
        _ => Some("stopping after this iteration; press Ctrl-C again to stop at once"),
    };
    if let Err(e) = ui::catch_interrupts(word) {
        ui.warn(&format!(
            "Ctrl-C cannot be caught ({e}); stopping loses what came after the last checkpoint"
        ));
    }
    match commands::run(args.command, &job, &ui) {
        Ok(()) => ExitCode::SUCCESS,
        Err(CliError::Interrupted(text)) => {
            ui.result(&text);
            ExitCode::from(130)
        }
        Err(e) => {
            fail(&job, &e);
            ExitCode::FAILURE
        }
    }
}

/// Reports an error. Other ranks would wait for this one for ever, so it ends them; most errors are everybody's, and the first rank's word is enough.
fn fail(job: &jarz_mpi::Job, e: &CliError) {
    let ranks = job.ranks();
    if !ranks.is_first() {
        std::thread::sleep(std::time::Duration::from_secs(3));
    }
    match ranks.is_alone() {
        true => eprintln!("error: {e}"),
        false => eprintln!("error on rank {} of {}: {e}", ranks.rank(), ranks.size()),
    }
    job.abort(1);
}
