/** What tests of `posthouse reports` share: a relay process with people, a channel and its reports. */
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { TestChannel } from '../fixtures/channel.ts';
import { KillableRelay } from '../fixtures/killable-relay.ts';
import type { Person } from '../fixtures/person.ts';
import { killAll, posthouse } from '../support/command.ts';
import { RelayData } from '../support/engine.ts';

/** Milliseconds for a test that runs many commands on a busy machine. */
export const patience = 180_000;

interface Ended {
  readonly code: number | string | null;
  readonly output: string;
  readonly errors: string;
}

/** Runs `posthouse reports` to its end, in a process of its own. */
export async function runReports(
  args: readonly string[],
  environment: Record<string, string> = {},
  input = '',
): Promise<Ended> {
  const { ended, output } = posthouse(['reports', ...args], environment, { input });
  const code = await ended;
  return { code, output: output.text, errors: output.errors };
}

/** A relay in a process of its own, three people who are at home there, and a channel of the first. */
export class ChannelRelay {
  #data!: RelayData;
  ground!: KillableRelay;
  ann!: Person;
  ben!: Person;
  cem!: Person;
  /** A new one for each test. */
  channel!: TestChannel;

  /** Where the relay's configuration is, as flags of a command. */
  get config(): readonly string[] {
    return ['--config', join(this.#data.path, 'config.json')];
  }

  /** Declares the relay for the tests of a file or block; `name` is the name of their channels. */
  static declare(name: string): ChannelRelay {
    const relay = new ChannelRelay();
    beforeAll(async () => {
      relay.#data = await RelayData.empty();
      relay.ground = await KillableRelay.start(relay.#data);
      relay.ann = await relay.ground.register('ann');
      relay.ben = await relay.ground.register('ben');
      relay.cem = await relay.ground.register('cem');
    });
    afterAll(async () => {
      await relay.ground.stop();
      killAll();
      await relay.#data[Symbol.asyncDispose]();
    });
    beforeEach(async () => {
      relay.channel = await TestChannel.create(relay.ground, relay.ann, { name });
    });
    return relay;
  }

  /** Runs the command with the configuration of the relay. */
  async reports(...args: string[]): Promise<Ended> {
    return await runReports([...args, ...this.config]);
  }

  /** Returns what the command prints, which must have succeeded. */
  async printed(...args: string[]): Promise<string> {
    const { code, output, errors } = await this.reports(...args);
    expect([code, errors]).toEqual([0, '']);
    return output;
  }

  /** Returns the reports that the command lists as JSON. */
  async listed(...args: string[]): Promise<Record<string, unknown>[]> {
    const lines = (await this.printed('--json', ...args)).split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** Reports a post of the channel. */
  async report(by: Person, target: number, reason = 'spam'): Promise<void> {
    const params = {
      ...{ channel_id: this.channel.channelId, target_sequence: target, reason },
    };
    await this.ground.call('channel.post.report', params, { session: by.session() });
  }
}
