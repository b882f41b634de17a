/** Loaded before the tests (`vitest.config.ts`). */
import fc from 'fast-check';

// A report shows errors by their stack alone: the cause of a failed property belongs to its text.
fc.configureGlobal({ ...fc.readConfigureGlobal(), includeErrorInReport: true });
