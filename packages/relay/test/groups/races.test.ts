import { describe } from 'vitest';
import { oneProcess } from '../support/races.ts';
import { describeRaces } from './races.ts';

describe('many at once, at one process', () => {
  describeRaces(() => oneProcess({ groups: true }));
});
