/**
 * What must hold when many devices call concurrently, whichever process each of them calls. The test
 * file chooses the processes.
 */
import { afterAll, beforeAll } from 'vitest';
import type { RelayProcesses } from '../fixtures/races.ts';
import { testChainRaces } from './chain-races.ts';
import { GroupRaces } from './group-races.ts';
import { testMemberRaces } from './member-races.ts';

export function describeRaces(open: () => Promise<RelayProcesses>): void {
  let processes: RelayProcesses;
  let races: GroupRaces;
  beforeAll(async () => {
    processes = await open();
    races = await GroupRaces.open(processes);
  });
  afterAll(() => processes[Symbol.asyncDispose]());
  testChainRaces(() => races);
  testMemberRaces(() => races);
}
