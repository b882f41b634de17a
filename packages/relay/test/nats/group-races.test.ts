import { describe } from 'vitest';
import { twoProcesses } from '../fixtures/races.ts';
import { describeRaces } from '../groups/races.ts';
import { withoutNats } from '../support/nats.ts';

describe.skipIf(withoutNats !== undefined)(
  `concurrent calls at two processes (${withoutNats ?? 'real'})`,
  () => {
    describeRaces(() => twoProcesses({ groups: true }));
  },
);
