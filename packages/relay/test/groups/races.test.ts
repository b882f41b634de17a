import { describe } from 'vitest';
import { FrontDoor } from '../support/relay.ts';
import { describeRaces } from './races.ts';

describe('many at once, at one process', () => {
  describeRaces(async () => {
    const door = await FrontDoor.start({ host: { groups: true } });
    return { doors: [door], [Symbol.asyncDispose]: () => door[Symbol.asyncDispose]() };
  });
});
