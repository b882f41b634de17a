/** Loaded before the tests (`vitest.config.ts`). */
import fc from 'fast-check';

fc.configureGlobal({
  ...fc.readConfigureGlobal(),
  // The same inputs in each run, unless `TEST_SEED` asks for others.
  seed: Number(process.env.TEST_SEED),
  // A report shows errors by their stack alone: the cause of a failed property belongs to its text.
  includeErrorInReport: true,
});
