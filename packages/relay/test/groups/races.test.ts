import { describe } from 'vitest';
import { oneProcess } from '../fixtures/races.ts';
import { describeRaces } from './races.ts';

describe('many at once, at one process', () => {
  describeRaces(() => oneProcess({ groups: true }));
});
