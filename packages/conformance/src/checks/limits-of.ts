import { setTimeout } from 'node:timers/promises';
import type { JsonObject } from '@posthouse/protocol';
import { demand } from '../demand.ts';
import type { Stage } from '../stage.ts';

/** A limit the relay states in `relay.info` (02 §11.2). */
export async function relayLimit(stage: Stage, name: string): Promise<number> {
  const info = (await stage.succeed(stage.https(), 'relay.info')) as JsonObject;
  const value = (info.limits as JsonObject)[name];
  demand(typeof value === 'number', `relay.info states ${name}`);
  return value;
}

/** The relay's clock, Unix seconds. */
export async function relayTime(stage: Stage): Promise<number> {
  const info = (await stage.succeed(stage.https(), 'relay.info')) as JsonObject;
  return Number(info.server_time);
}

/** Waits until the relay's clock is there. */
export async function untilRelayTime(stage: Stage, instant: number): Promise<void> {
  for (let now = await relayTime(stage); now < instant; now = await relayTime(stage)) {
    await setTimeout((instant - now) * 500);
  }
}
