import { expect, vi } from 'vitest';
import type { RelayContext } from '../../src/context.ts';
import { JobRunner } from '../../src/jobs/runner.ts';
import { patience } from './patience.ts';

/** Waits until each job of a relay has run once, which it does at the start, next to the first calls. */
export async function firstRunsEnded({ jobs, metrics }: RelayContext): Promise<void> {
  if (!(jobs instanceof JobRunner)) throw new Error('its jobs run when a test says so');
  await vi.waitFor(() => {
    const never = jobs.names.filter(
      (job) => metrics.value('job_last_success_seconds', { job }) === 0,
    );
    expect(never).toEqual([]);
  }, patience);
}
