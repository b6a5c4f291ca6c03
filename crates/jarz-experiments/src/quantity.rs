//! Quantities by name: what tables, figures and criteria can speak of.

use crate::results::RunResult;
use crate::theory::kernels;
use serde::{Deserialize, Serialize};

/// A number that every logged iteration of a run has, or has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[allow(missing_docs)]
pub enum Quantity {
    Mass,
    MassError,
    MassDistance,
    SmallerMass,
    DataMass,
    Mean(usize),
    MeanDistance,
    Kl,
    KlExact,
    LogZError,
    LogZDistance,
    LogZStdError,
    LogZPredicted,
    LogZPredictedPlain,
    Ess,
    EssMargin,
    EssPredicted,
    EssPerGradient,
    Acceptance,
    Resamplings,
    Ancestors,
    GradientNorm,
    StepSize,
    Z,
    ZPredicted,
    ZFixedPoint,
    ZFromFixedPoint,
    ZFixedPointError,
    BandUse,
}

/// Name in files, name in tables and on axes, and what it is.
const NAMES: [(Quantity, &str, &str, &str); 29] = {
    use Quantity::*;
    [
        (Mass, "mass", "mass", "the model's mass of the mode at the data's first one"),
        (MassError, "mass_error", "mass − data", "that mass less the fraction of the run's own data points"),
        (MassDistance, "mass_distance", "|mass − data|", "the absolute value of mass_error"),
        (SmallerMass, "smaller_mass", "smaller mass", "the smaller one of that mass and the rest"),
        (DataMass, "data_mass", "data", "fraction of the run's own data points in the first mode"),
        (
            Mean(0),
            "mean.0",
            "mean",
            "first coordinate of the model's mode at the data's mode 0; also mean.1 and so on",
        ),
        (MeanDistance, "mean_distance", "error of the means", "largest error of these first coordinates"),
        (Kl, "kl", "KL weights", "KL divergence estimated from the weights"),
        (KlExact, "kl_exact", "KL exact", "KL divergence with the exact log Z"),
        (
            LogZError,
            "log_z_error",
            "error of log Z",
            "estimated less exact log Z; the same as kl less kl_exact",
        ),
        (LogZDistance, "log_z_distance", "|error of log Z|", "the absolute value of log_z_error"),
        (
            LogZStdError,
            "log_z_std_error",
            "stated error of log Z",
            "standard error of log Z that the run states itself",
        ),
        (
            LogZPredicted,
            "log_z_predicted",
            "predicted",
            "predicted log_z_error of the paper's rule, with the walkers' memory",
        ),
        (
            LogZPredictedPlain,
            "log_z_predicted_plain",
            "−γ tr Cov / N_eff",
            "the same without memory: −γ tr Cov / N_eff, summed up",
        ),
        (Ess, "ess", "ESS", "effective fraction of the walkers"),
        (EssMargin, "ess_margin", "ESS − threshold", "ESS less the threshold of resampling"),
        (EssPredicted, "ess_predicted", "predicted", "ESS of ULA walkers at rest in separate Gaussian modes"),
        (
            EssPerGradient,
            "ess_per_gradient",
            "ESS per gradient",
            "ESS over the gradient evaluations per walker so far",
        ),
        (Acceptance, "acceptance", "acceptance", "acceptance of the kernel, would-be for ULA"),
        (Resamplings, "resamplings", "resamplings", "resamplings so far"),
        (Ancestors, "ancestors", "ancestors", "initial walkers that still have descendants"),
        (GradientNorm, "gradient_norm", "gradient norm", "norm of the direction"),
        (StepSize, "step_size", "h", "time step of the kernel"),
        (Z, "z", "z", "log of the first mode's mass over the second's"),
        (ZPredicted, "z_predicted", "predicted", "z by the differential equation of the theory appendix"),
        (ZFixedPoint, "z_fixed_point", "fixed point", "where that equation comes to rest"),
        (ZFromFixedPoint, "z_from_fixed_point", "z − fixed point", "distance from there, with its sign"),
        (
            ZFixedPointError,
            "z_fixed_point_error",
            "error of the fixed point",
            "its predicted standard error, from crossings of the barrier",
        ),
        (
            BandUse,
            "band_use",
            "share of the band",
            "distance from z_predicted over the width of the theory's band",
        ),
    ]
};

impl Quantity {
    /// Name in tables and on axes.
    pub fn label(self) -> String {
        match self {
            Quantity::Mean(k) => format!("mean {}", k + 1),
            q => entry(q).map_or(String::new(), |e| e.2.to_string()),
        }
    }

    /// Digits after the point in tables.
    pub fn digits(self) -> usize {
        use Quantity::*;
        match self {
            Ess | EssPredicted | Acceptance => 2,
            Mean(_) | Z | ZPredicted | ZFixedPoint => 3,
            Resamplings | Ancestors => 1,
            EssPerGradient => 6,
            _ => 4,
        }
    }

    /// Its value at row `i` of a run.
    pub fn at(self, run: &RunResult, i: usize) -> Option<f64> {
        use Quantity::*;
        let row = run.rows.get(i)?;
        match self {
            Mass => run.mass(i),
            MassError => Some(run.mass(i)? - run.data_mass),
            MassDistance => MassError.at(run, i).map(f64::abs),
            SmallerMass => run.mass(i).map(|m| m.min(1.0 - m)),
            DataMass => Some(run.data_mass),
            Mean(t) => run.mean(i, t),
            MeanDistance => run.mean_distance(i),
            Kl => row.kl.filter(|_| run.is_weighted()),
            KlExact => row.kl_exact,
            LogZError => Some(row.log_z? - row.log_z_exact?),
            LogZDistance => LogZError.at(run, i).map(f64::abs),
            LogZStdError => row.log_z_std_error,
            LogZPredicted => run.drift(i).map(|d| d.with_memory),
            LogZPredictedPlain => run.drift(i).map(|d| d.plain),
            Ess => row.ess.filter(|_| run.is_weighted()),
            EssMargin => Some(Ess.at(run, i)? - run.config.resampling.threshold),
            EssPredicted => Some(kernels::ess_at_rest(run.config.kernel.step_size, run.dim()?)),
            EssPerGradient => {
                let gradients = row.iteration as f64 * kernels::gradient_evaluations(&run.config);
                (gradients > 0.0).then_some(Ess.at(run, i)? / gradients)
            }
            Acceptance => row.acceptance,
            Resamplings => run.is_weighted().then_some(row.resamplings as f64),
            Ancestors => run.is_weighted().then_some(row.distinct_ancestors as f64),
            GradientNorm => row.gradient_norm,
            StepSize => Some(row.step_size),
            Z => run.z(i),
            ZPredicted => run.prediction().and_then(|p| p.z.get(i).copied()),
            ZFixedPoint => run.prediction()?.fixed_point,
            ZFromFixedPoint => Some(run.z(i)? - run.prediction()?.fixed_point?),
            ZFixedPointError => run.prediction()?.fixed_point_error,
            BandUse => run.prediction()?.band_use.get(i).copied().flatten(),
        }
    }
}

fn entry(q: Quantity) -> Option<&'static (Quantity, &'static str, &'static str, &'static str)> {
    NAMES.iter().find(|e| e.0 == q)
}

impl TryFrom<String> for Quantity {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if let Some(k) = name.strip_prefix("mean.").and_then(|k| k.parse().ok()) {
            return Ok(Quantity::Mean(k));
        }
        let found = NAMES.iter().find(|e| e.1 == name).map(|e| e.0);
        let names: Vec<&str> = NAMES.iter().map(|e| e.1).collect();
        found.ok_or_else(|| format!("there is no quantity \"{name}\"; there are {}", names.join(", ")))
    }
}

impl From<Quantity> for String {
    fn from(q: Quantity) -> String {
        match q {
            Quantity::Mean(k) => format!("mean.{k}"),
            q => entry(q).map_or(String::new(), |e| e.1.to_string()),
        }
    }
}

/// Names of all quantities with what they are.
pub fn names() -> Vec<(&'static str, &'static str)> {
    NAMES.iter().map(|e| (e.1, e.3)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for (name, _) in names() {
            let q = Quantity::try_from(name.to_string()).unwrap();
            assert_eq!(String::from(q), name);
            assert!(!q.label().is_empty());
        }
        assert_eq!(Quantity::try_from("mean.3".to_string()), Ok(Quantity::Mean(3)));
        assert!(Quantity::try_from("masss".to_string()).unwrap_err().contains("mass_error"));
    }
}
