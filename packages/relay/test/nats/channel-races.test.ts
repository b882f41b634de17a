import { describe } from 'vitest';
import { describeRaces } from '../channels/races.ts';
import { twoProcesses } from '../fixtures/races.ts';
import { withoutNats } from '../support/nats.ts';

describe.skipIf(withoutNats !== undefined)(
  `concurrent calls at two processes (${withoutNats ?? 'real'})`,
  () => {
    describeRaces(() => twoProcesses({ channels: true }));
  },
);
