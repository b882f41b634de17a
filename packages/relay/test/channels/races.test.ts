import { describe } from 'vitest';
import { oneProcess } from '../fixtures/races.ts';
import { describeRaces } from './races.ts';

describe('concurrent calls at one process', () => {
  describeRaces(() => oneProcess({ channels: true }));
});
