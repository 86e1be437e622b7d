//! Experts on the CPU and on GPUs: every quantisation and layout, one token to hundreds, through
//! ggml's kernels. Weights come from memory, as they do when a model routes: each run takes other
//! experts of a stack that no cache holds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use motley_cost::calibration::{DeviceCost, ExpertCost, KernelWay, MeasuredPoint, WeightLayout};
use motley_cost::{ComputeCost, ComputeSample, ExpertShape, Fit};
use motley_ggml::gpu::GpuDevice;
use motley_ggml::{
    BenchError, ExpertStack, Layout, Runtime, StackSpec, Threadpool, ThreadpoolOptions,
};

use super::clock::{Steps, undisturbed_us};
use super::error::MeasureError;
use super::ways::{LAYOUTS, WAYS, ggml_way};
use crate::kind::ExpertKind;

/// Tokens at which the other shape is tried.
const OTHER_TOKENS: [u32; 3] = [1, 16, 128];
/// The shape that is predicted from it and measured.
const OTHER_SHAPE: (u32, u32) = (4096, 1024);
/// Experts of one block while they have few tokens; a token chooses about so many.
const EXPERTS: u32 = 8;
/// Most of them.
const MOST_EXPERTS: u32 = 64;
/// With more tokens than this, few experts are a block long enough to measure.
const FEW_TOKENS: u32 = 8;
/// A run that would take longer than this, and than many slices, is left out.
const LONG: Duration = Duration::from_millis(500);
/// Most that starting a block can be of one expert's time; more is noise.
const MOST_OF_ONE: f64 = 0.2;

/// How thoroughly experts are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Depth {
    /// Tokens of one expert, from decode to a large chunk of prefill.
    tokens: &'static [u32],
    /// Whether the fit is tried on a shape it was not measured with.
    other_shape: bool,
    /// Fewest experts of a stack.
    least_experts: u64,
    /// Kinds and layouts for which no time is left are skipped, except the first.
    in_time: bool,
}

impl Depth {
    /// For a calibration of minutes. A run and the next share no expert.
    pub(super) const FULL: Self = Self {
        tokens: &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
        other_shape: true,
        least_experts: 2 * EXPERTS as u64,
        in_time: false,
    };
    /// For seconds: one token and many. Where so few experts are a stack, a block of them is
    /// larger than a cache by itself.
    pub(super) const QUICK: Self = Self {
        tokens: &[1, 8, 64],
        other_shape: false,
        least_experts: EXPERTS as u64 + 2,
        in_time: true,
    };

    /// Points of one type and layout: a curve and the block's cost per number of threads, and
    /// the other shape.
    fn points(&self, counts: usize) -> usize {
        let other = if self.other_shape { OTHER_TOKENS.len() } else { 0 };
        counts * self.device_points() + other
    }

    /// The same of one type on a device.
    fn device_points(&self) -> usize {
        self.tokens.len() + 1
    }
}

/// Costs by kind, layout and number of threads; done by `until`, unless a single run takes
/// longer.
pub(super) fn measure(
    subject: &Subject<'_>,
    counts: &[u32],
    until: Instant,
    steps: &mut Steps<'_>,
) -> Result<Vec<ExpertCost>, MeasureError> {
    let depth = subject.depth;
    let points = depth.points(counts.len());
    let mut pace = Pace { until, all: WAYS * subject.kinds.len() * points, done: 0 };
    let mut costs = Vec::new();
    for &kind in subject.kinds {
        for (layout, ways) in LAYOUTS {
            if depth.in_time && !costs.is_empty() && pace.is_over() {
                return Ok(costs);
            }
            let others = costs.iter().any(|cost| cost.quantisation == kind.ty.name());
            // Where nothing else was, there is nothing to rearrange into.
            let ways = match ways.split_last() {
                Some((KernelWay::Rearranged, ways)) if !others => {
                    pace.skip(points);
                    ways
                }
                _ => ways,
            };
            let bench = Bench { subject, kind, layout, ways };
            match bench.run(counts, &mut pace, steps) {
                Ok(found) => costs.extend(found),
                // Not every type has a rearranged form on every CPU.
                Err(MeasureError::Experts(BenchError::NoLayout { .. })) => {
                    pace.skip(ways.len() * points);
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(costs)
}

/// Costs by kind on `device`, rows there and back counted; done by `until` as above. A type its
/// kernels lack, or for which it has no memory, is left out.
pub(super) fn measure_on(
    device: &GpuDevice,
    subject: &Subject<'_>,
    until: Instant,
    steps: &mut Steps<'_>,
) -> Result<DeviceCost, MeasureError> {
    let name = device.info().name.clone();
    let points = subject.depth.device_points();
    let mut pace = Pace { until, all: subject.kinds.len() * points, done: 0 };
    let mut experts = Vec::new();
    for &kind in subject.kinds {
        if subject.depth.in_time && !experts.is_empty() && pace.is_over() {
            break;
        }
        steps.report(&format!("{} experts on {name}", kind.ty), pace.done, pace.all);
        let bench = Bench { subject, kind, layout: Layout::Plain, ways: &[KernelWay::Whole] };
        match ExpertStack::on_device(device, bench.stack_spec(kind.shape)) {
            Ok(stack) => {
                for curve in bench.curves(&stack, 1, &mut pace)? {
                    experts.push(bench.cost(1, curve, &bench.shape(kind.shape)));
                }
            }
            Err(BenchError::NoLayout { .. } | BenchError::Memory { .. }) => {
                pace.skip(points);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(DeviceCost { name, experts })
}

/// What is measured and with what.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) kinds: &'a [ExpertKind],
    pub(super) depth: Depth,
    /// Size of a stack of experts that no cache holds.
    pub(super) stack_bytes: u64,
}

/// What is left to do and until when: slices shrink and grow with it.
struct Pace {
    until: Instant,
    all: usize,
    done: usize,
}

impl Pace {
    /// Time for the next point.
    fn slice(&mut self) -> Duration {
        let left = self.until.saturating_duration_since(Instant::now());
        let slice = left / (self.all - self.done).max(1) as u32;
        self.done = (self.done + 1).min(self.all);
        slice
    }

    fn skip(&mut self, points: usize) {
        self.done = (self.done + points).min(self.all);
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}

/// One type in one layout.
struct Bench<'a> {
    subject: &'a Subject<'a>,
    kind: ExpertKind,
    layout: Layout,
    ways: &'a [KernelWay],
}

/// What was measured of one way.
struct Curve {
    way: KernelWay,
    /// Fixed cost of a block.
    block_us: f64,
    measured: Vec<MeasuredPoint>,
}

impl Bench<'_> {
    fn run(
        &self,
        counts: &[u32],
        pace: &mut Pace,
        steps: &mut Steps<'_>,
    ) -> Result<Vec<ExpertCost>, MeasureError> {
        let shape = self.shape(self.kind.shape);
        let mut stack = self.stack(self.kind.shape, pool(counts[0])?)?;
        let mut costs = Vec::new();
        for &threads in counts {
            stack.set_pool(pool(threads)?);
            steps.report(
                &format!("{} experts, {threads} threads", self.kind.ty),
                pace.done,
                pace.all,
            );
            for curve in self.curves(&stack, threads, pace)? {
                costs.push(self.cost(threads, curve, &shape));
            }
        }
        drop(stack);
        // Of the largest number of threads.
        let first = costs.len() - self.ways.len();
        for last in costs[first..].iter_mut().filter(|_| self.subject.depth.other_shape) {
            let (of_fit, of_points) = self.other_shape(last, pace)?;
            last.other_shape_relative = Some(of_fit);
            last.other_shape_points_relative = Some(of_points);
        }
        Ok(costs)
    }

    fn shape(&self, (hidden, intermediate): (u32, u32)) -> ExpertShape {
        ExpertShape::new(hidden, intermediate, self.kind.ty.bits_per_weight())
    }

    fn stack_spec(&self, (hidden, intermediate): (u32, u32)) -> StackSpec {
        let bytes = self.shape((hidden, intermediate)).bytes.max(1);
        let least = self.subject.depth.least_experts;
        let experts = self.subject.stack_bytes.div_ceil(bytes).max(least) as u32;
        StackSpec { hidden, intermediate, experts, ty: self.kind.ty, layout: self.layout }
    }

    fn stack(&self, shape: (u32, u32), pool: Arc<Threadpool>) -> Result<ExpertStack, MeasureError> {
        Ok(ExpertStack::new(self.subject.runtime, self.stack_spec(shape), pool)?)
    }

    fn cost(
        &self,
        threads: u32,
        Curve { way, block_us, measured }: Curve,
        shape: &ExpertShape,
    ) -> ExpertCost {
        let sample = |m: &MeasuredPoint| ComputeSample { tokens: m.tokens, took_us: m.took_us };
        let samples: Vec<_> = measured.iter().map(sample).collect();
        let fit = ComputeCost::fit_relative(&samples).unwrap_or_else(|_| single(&samples));
        let (launch_us, us_per_mb, us_per_mflop) = ExpertCost::rates(&fit, shape);
        ExpertCost {
            quantisation: self.kind.ty.name().into(),
            bits_per_weight: self.kind.ty.bits_per_weight(),
            layout: match self.layout {
                Layout::Plain => WeightLayout::Plain,
                Layout::Repacked => WeightLayout::Repacked,
                Layout::Amx => WeightLayout::Amx,
            },
            way,
            threads,
            block_us,
            launch_us,
            us_per_mb,
            us_per_mflop,
            residuals: fit.residuals,
            other_shape_relative: None,
            other_shape_points_relative: None,
            hidden: self.kind.shape.0,
            intermediate: self.kind.shape.1,
            measured,
        }
    }

    /// Time of one expert by tokens, the block's share taken off, in every way. Ways take turns at
    /// each number of tokens, so that the machine's moods are the same for all. Stops where a run
    /// would take far longer than its slice.
    fn curves(
        &self,
        stack: &ExpertStack,
        threads: u32,
        pace: &mut Pace,
    ) -> Result<Vec<Curve>, MeasureError> {
        let begin = |&way: &KernelWay| {
            let block_us = self.block_us(stack, way, pace)?;
            Ok(Curve { way, block_us, measured: Vec::new() })
        };
        let mut curves = self.ways.iter().map(begin).collect::<Result<Vec<_>, MeasureError>>()?;
        let all = self.subject.depth.tokens;
        for (index, &tokens) in all.iter().enumerate() {
            let experts = experts_for(tokens, threads);
            let mut longest = (0.0_f64, Duration::ZERO);
            for curve in &mut curves {
                let slice = pace.slice();
                let us = self.run_us(stack, (experts, tokens), curve.way, slice)?;
                let took_us = (us - curve.block_us).max(0.5 * us) / f64::from(experts);
                curve.measured.push(MeasuredPoint { tokens, took_us });
                longest = (longest.0.max(us), slice);
            }
            let Some(&next) = all.get(index + 1) else { break };
            let rows = |tokens: u32| f64::from(tokens * experts_for(tokens, threads));
            let next = Duration::from_secs_f64(1e-6 * longest.0 * rows(next) / rows(tokens));
            if next > LONG.max(8 * longest.1) && tokens >= FEW_TOKENS {
                pace.skip((all.len() - 1 - index) * curves.len());
                break;
            }
        }
        Ok(curves)
    }

    /// Mean relative errors of `cost` on a shape it was not measured with: of the fit, and of
    /// its points.
    fn other_shape(&self, cost: &ExpertCost, pace: &mut Pace) -> Result<(f64, f64), MeasureError> {
        let stack = self.stack(OTHER_SHAPE, pool(cost.threads)?)?;
        let shape = self.shape(OTHER_SHAPE);
        let (mut of_fit, mut of_points) = (0.0, 0.0);
        for tokens in OTHER_TOKENS {
            let experts = experts_for(tokens, cost.threads);
            let took_us = self.run_us(&stack, (experts, tokens), cost.way, pace.slice())?;
            let experts = f64::from(experts);
            let error = |one: f64| (cost.block_us + experts * one - took_us).abs() / took_us;
            of_fit += error(cost.compute(&shape).us(tokens));
            of_points += error(cost.points_us(&shape, tokens));
        }
        let count = OTHER_TOKENS.len() as f64;
        Ok((of_fit / count, of_points / count))
    }

    /// Fixed cost of one block: what eight experts in one block save over one alone.
    /// `T(1) = block + t`, `T(8) = block + 8 t`. A difference of two times, so noise is bounded.
    fn block_us(
        &self,
        stack: &ExpertStack,
        way: KernelWay,
        pace: &mut Pace,
    ) -> Result<f64, MeasureError> {
        let slice = pace.slice();
        let one = self.run_us(stack, (1, 1), way, slice / 2)?;
        let many = self.run_us(stack, (EXPERTS, 1), way, slice / 2)?;
        let experts = f64::from(EXPERTS);
        Ok(((experts * one - many) / (experts - 1.0)).clamp(0.0, MOST_OF_ONE * one))
    }

    /// Time of an undisturbed block of (experts, tokens each) over always other experts of the stack.
    fn run_us(
        &self,
        stack: &ExpertStack,
        (experts, tokens): (u32, u32),
        way: KernelWay,
        slice: Duration,
    ) -> Result<f64, MeasureError> {
        let block = std::cell::RefCell::new(stack.block(experts, tokens, ggml_way(way))?);
        let mut first = 0;
        if tokens <= FEW_TOKENS {
            // Wakes the threads; a long run hides that.
            block.borrow_mut().choose(first);
            block.borrow_mut().run();
        }
        let choose = || {
            first += experts;
            block.borrow_mut().choose(first);
        };
        Ok(undisturbed_us(slice, choose, || {
            block.borrow_mut().run();
        }))
    }
}

/// A machine so slow that one size is all that was measured: a cost that ignores the load.
fn single(samples: &[ComputeSample]) -> Fit<ComputeCost> {
    let us = samples.first().map_or(0.0, |sample| sample.took_us);
    Fit { model: ComputeCost::constant(us), residuals: Default::default() }
}

fn pool(threads: u32) -> Result<Arc<Threadpool>, MeasureError> {
    Threadpool::new(&ThreadpoolOptions::with_threads(threads))
        .map(Arc::new)
        .ok_or(MeasureError::Threads { threads })
}

/// Experts of a block: as a token chooses them, or as many as keep threads busy, which are the
/// least a prompt has.
fn experts_for(tokens: u32, threads: u32) -> u32 {
    if tokens <= FEW_TOKENS { EXPERTS } else { (2 * threads).min(MOST_EXPERTS) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::SHAPE;
    use motley_ggml::Seam;
    use motley_model::gguf::GgmlType;

    #[test]
    fn a_device_is_measured_with_rows_there_and_back() {
        let runtime = Runtime::start(Seam::Registered).unwrap();
        let kinds = [GgmlType::Q4_0, GgmlType::F16].map(|ty| ExpertKind { ty, shape: (512, 256) });
        let subject =
            Subject { runtime: &runtime, kinds: &kinds, depth: Depth::FULL, stack_bytes: 8 << 20 };
        let until = Instant::now() + Duration::from_millis(400);
        let mut quiet = |_: &str, _: f64| {};
        // The CPU stands in for a GPU.
        let device = GpuDevice::cpu(&runtime);
        let cost = measure_on(&device, &subject, until, &mut Steps::new(&mut quiet)).unwrap();
        assert_eq!((cost.name.as_str(), cost.experts.len()), ("CPU", 2));
        for expert in &cost.experts {
            assert_eq!((expert.threads, expert.layout), (1, WeightLayout::Plain));
            assert!(expert.measured.len() >= 3 && expert.us_per_mb > 0.0, "{expert:?}");
        }
    }

    #[test]
    fn a_type_is_measured_on_the_real_kernels() {
        let runtime = Runtime::start(Seam::Registered).unwrap();
        let kinds = [ExpertKind { ty: GgmlType::Q4_0, shape: SHAPE }];
        let subject =
            Subject { runtime: &runtime, kinds: &kinds, depth: Depth::FULL, stack_bytes: 8 << 20 };
        let until = Instant::now() + Duration::from_millis(800);
        let mut quiet = |_: &str, _: f64| {};
        let costs = measure(&subject, &[1], until, &mut Steps::new(&mut quiet)).unwrap();
        let costs: Vec<_> =
            costs.into_iter().filter(|cost| cost.layout == WeightLayout::Plain).collect();
        let cost = &costs[0];
        assert_eq!((cost.quantisation.as_str(), cost.threads), ("q4_0", 1));
        assert!(cost.us_per_mflop > 0.0 && cost.measured.len() > 3, "{cost:?}");
        let (first, last) = (cost.measured[0], *cost.measured.last().unwrap());
        assert!(first.took_us > 0.0 && last.took_us > first.took_us, "{cost:?}");
        assert!(cost.other_shape_relative.is_some_and(f64::is_finite), "{cost:?}");
    }
}
