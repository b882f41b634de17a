import { describe } from 'vitest';
import { describeRaces } from '../channels/races.ts';
import { withoutNats } from '../support/nats.ts';
import { twoProcesses } from '../support/races.ts';

describe.skipIf(withoutNats !== undefined)(
  `concurrent calls at two processes (${withoutNats ?? 'real'})`,
  () => {
    describeRaces(() => twoProcesses({ channels: true }));
  },
);
