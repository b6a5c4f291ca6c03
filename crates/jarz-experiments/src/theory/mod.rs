//! What theory predicts for some of the experiments, in closed form or by integrating a differential equation.

pub mod kernels;
pub mod mode_collapse;
pub mod poisson;
pub mod self_interaction;
