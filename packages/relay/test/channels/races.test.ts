import { describe } from 'vitest';
import { oneProcess } from '../support/races.ts';
import { describeRaces } from './races.ts';

describe('concurrent calls at one process', () => {
  describeRaces(() => oneProcess({ channels: true }));
});
