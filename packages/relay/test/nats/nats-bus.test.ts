/** The bus between processes by itself: real servers, no relay. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { connect } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Notice } from '../../src/dispatch/notice.ts';
import { NatsBus } from '../../src/notifications/nats-bus.ts';
import { devCertificate } from '../../src/tls/dev-ca.ts';
import { temporaryFolder } from '../support/folder.ts';
import { TestNats, withoutNats } from '../support/nats.ts';
import { freePort } from '../support/ports.ts';
import { TcpProxy } from './tcp-proxy.ts';

const subject = 'posthouse.test.notices';
const patience = { timeout: 20_000, interval: 20 };

type Times = Pick<Parameters<typeof NatsBus.start>[0], 'silence' | 'startWait'>;

/** A bus that writes down what its listeners hear and what becomes of it. */
class Post implements AsyncDisposable {
  readonly heard: Notice[] = [];
  readonly events: string[] = [];
  readonly errors: Error[] = [];
  dropped = 0;
  refused = 0;
  readonly bus: Promise<NatsBus>;

  constructor(url: string, times: Times) {
    this.bus = NatsBus.start({
      ...{ url, ...times },
      subject,
      observer: {
        failed: (error) => this.errors.push(error as Error),
        lost: (error) => {
          this.events.push('lost');
          this.errors.push(error as Error);
        },
        restored: () => this.events.push('back'),
        dropped: (count) => {
          this.dropped += count;
        },
        invalid: (count) => {
          this.refused += count;
        },
      },
    });
  }

  static async open(url: string, times: Times = {}): Promise<Post> {
    const post = new Post(url, times);
    const bus = await post.bus;
    bus.subscribe((notice) => post.heard.push(notice));
    return post;
  }

  async publish(...notices: Notice[]): Promise<void> {
    (await this.bus).publish(notices);
  }

  /** Heard but for gaps. */
  get news(): Notice[] {
    return this.heard.filter(({ kind }) => kind !== 'gap');
  }

  get gaps(): number {
    return this.heard.length - this.news.length;
  }

  async whole(is: boolean): Promise<void> {
    const bus = await this.bus;
    await vi.waitFor(() => expect(bus.isConnected).toBe(is), patience);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.bus)[Symbol.asyncDispose]();
  }
}

const timeline = (head: number): Notice => ({
  kind: 'timeline',
  account: 'ann',
  head,
  deviceIds: ['phone'],
});
const heads = (notices: readonly Notice[]) =>
  notices.map((notice) => (notice.kind === 'timeline' ? notice.head : notice.kind));

describe.skipIf(withoutNats !== undefined)(`notices over NATS (${withoutNats ?? 'real'})`, () => {
  let nats: TestNats;
  let open: AsyncDisposableStack;

  beforeEach(async () => {
    open = new AsyncDisposableStack();
    nats = open.use(await TestNats.start());
  });
  afterEach(() => open.disposeAsync());

  const post = async (url = nats.url) => open.use(await Post.open(url));
  /** A bus that has tried a server once, in vain. */
  const refused = async (url: string) => {
    const here = open.use(await Post.open(url, { startWait: 0 }));
    await vi.waitFor(() => expect(here.events).toEqual(['lost']), patience);
    expect((await here.bus).isConnected).toBe(false);
    return here;
  };

  describe('while the server is there', () => {
    test('others hear everything once, in order; listeners here do so at once', async () => {
      const [here, there] = [await post(), await post()];
      const bus = await here.bus;
      for (let head = 0; head < 5_000; head += 1) bus.publish([timeline(head)]);
      const all = Array.from({ length: 5_000 }, (_, head) => head);
      expect(heads(here.news)).toEqual(all);
      await vi.waitFor(() => expect(there.news).toHaveLength(5_000), patience);
      expect(heads(there.news)).toEqual(all);
      // What comes back to its sender would be here by now.
      await there.publish(timeline(9_999));
      await vi.waitFor(() => expect(heads(here.news).at(-1)).toBe(9_999), patience);
      expect(here.news).toHaveLength(5_001);
    });

    test('what calls of one batch publish leaves in one message, in order', async () => {
      const [here, there] = [await post(), await post()];
      const witness = await connect({ servers: nats.url });
      open.defer(() => witness.close());
      const messages: string[] = [];
      witness.subscribe(subject, {
        callback: (_, message) => {
          messages.push(message.string());
        },
      });
      await witness.flush();
      // As calls do whose commit was awaited: each some promises later.
      const call = async (head: number) => {
        for (let hops = 0; hops < head % 7; hops += 1) await undefined;
        await here.publish(timeline(head));
      };
      await Promise.all(Array.from({ length: 100 }, (_, head) => call(head)));
      await vi.waitFor(() => expect(there.news).toHaveLength(100), patience);
      expect(heads(there.news)).toEqual(heads(here.news));
      await witness.flush();
      const full = messages.filter((text) => text.includes('timeline'));
      expect(full).toHaveLength(1);
    });

    test('03 §6: who is cut off is so before the hint, at every process', async () => {
      const [here, there] = [await post(), await post()];
      const notices: Notice[] = [
        { kind: 'revoked', account: 'ann', deviceIds: ['laptop'] },
        { kind: 'capped', account: 'ann', deviceId: 'phone', expiresAt: 1_750_000_000 },
        { kind: 'ended', account: 'ann', sessionIds: ['one', 'two'] },
        { kind: 'device-state', account: 'ann', revision: 7, deviceIds: ['phone'] },
      ];
      await here.publish(...notices);
      await vi.waitFor(() => expect(there.news).toHaveLength(notices.length), patience);
      expect(there.news).toEqual(notices);
    });

    test('a process that begins has the others look: its predecessor may have died', async () => {
      const here = await post();
      expect(here.gaps).toBe(0);
      await post();
      await vi.waitFor(() => expect(here.gaps).toBe(1), patience);
    });

    test('a process that falls silent is a gap for the others', async () => {
      const here = open.use(await Post.open(nats.url, { silence: 1_000 }));
      const proxy = open.use(await TcpProxy.start(nats.url));
      const { gaps } = here;
      const dies = open.use(await Post.open(proxy.url));
      await dies.publish(timeline(1));
      await vi.waitFor(() => expect(heads(here.news)).toEqual([1]), patience);
      proxy.cut();
      // It began with one.
      await vi.waitFor(() => expect(here.gaps).toBeGreaterThan(gaps + 1), patience);
      expect(heads(here.news)).toEqual([1]);
    });

    test('invalid items are counted and dropped; valid notices of the same message are delivered', async () => {
      const there = await post();
      const stranger = await connect({ servers: nats.url.replace('nats://', '') });
      open.defer(() => stranger.close());
      const deep = '['.repeat(100_000);
      const good = timeline(1);
      const junk: [string, number][] = [
        ['', 1],
        ['\u0000\ud800', 1],
        [deep, 1],
        ['null', 1],
        ['{"kind":"gap"}', 1],
        [JSON.stringify([null, 7, 'gap', [], {}]), 5],
        [JSON.stringify([{ kind: 'revoked', account: 'ann' }]), 1],
        [JSON.stringify([{ kind: 'revoked', account: 'ann', deviceIds: [7] }]), 1],
        [JSON.stringify([{ kind: 'capped', account: 'ann', deviceId: 'x', expiresAt: 'soon' }]), 1],
        [JSON.stringify([{ kind: 'ended', account: 'ann', sessionIds: 'one' }]), 1],
        [JSON.stringify([{ ...timeline(1), head: 1.5 }]), 1],
        [JSON.stringify([{ kind: 'toString' }, { kind: '__proto__' }]), 2],
        [JSON.stringify([{ kind: 'of-a-newer-relay', account: 'ann' }, good]), 1],
      ];
      for (const [text] of junk) stranger.publish(subject, text);
      stranger.publish(subject, new Uint8Array([0xff, 0xfe, 0x00]));
      await vi.waitFor(() => expect(there.news).toHaveLength(1), patience);
      await vi.waitFor(
        () => expect(there.refused).toBe(junk.reduce((sum, [, count]) => sum + count, 0) + 1),
        patience,
      );
      expect(there.news).toEqual([good]);
      expect(there.errors).toEqual([]);
    });

    test('relays of other names hear nothing', async () => {
      const here = await post();
      const stranger = await connect({ servers: nats.url.replace('nats://', '') });
      open.defer(() => stranger.close());
      stranger.publish('posthouse.other.notices', JSON.stringify([timeline(1)]));
      stranger.publish(subject, JSON.stringify([timeline(2)]));
      await vi.waitFor(() => expect(here.news).toHaveLength(1), patience);
      expect(heads(here.news)).toEqual([2]);
    });

    test('who ends hands over first what it published', async () => {
      const there = await post();
      const here = await Post.open(nats.url);
      const bus = await here.bus;
      const deviceIds = Array.from({ length: 4_000 }, (_, index) => `device number ${index}`);
      // More than the network takes at once.
      const notices = Array.from({ length: 150 }, (): Notice => {
        return { kind: 'revoked', account: 'ann', deviceIds };
      });
      bus.publish(notices);
      await here[Symbol.asyncDispose]();
      await vi.waitFor(() => expect(there.news).toHaveLength(notices.length), patience);
    });
  });

  test('a server that takes little is sent more messages, in order', async () => {
    const folder = open.use(temporaryFolder());
    const config = join(folder.path, 'nats.conf');
    writeFileSync(config, 'max_payload: 1024\n');
    const small = open.use(await TestNats.start('-c', config));
    const [here, there] = [await post(small.url), await post(small.url)];
    const deviceIds = Array.from({ length: 500 }, (_, index) => `device ${index}`);
    const notices = Array.from({ length: 100 }, (_, head) => timeline(head));
    await here.publish({ kind: 'revoked', account: 'ann', deviceIds }, ...notices);
    await vi.waitFor(() => expect(heads(there.news).at(-1)).toBe(99), patience);
    const revoked = there.news.filter((notice) => notice.kind === 'revoked');
    expect(revoked.flatMap((notice) => notice.deviceIds)).toEqual(deviceIds);
    expect(heads(there.news.slice(revoked.length))).toEqual(notices.map((_, head) => head));
    expect(here.events).toEqual([]);
  });

  describe('when the server is away', () => {
    test('nothing is kept for it, and both sides learn of the gap when it is back', async () => {
      const [here, there] = [await post(), await post()];
      await vi.waitFor(() => expect(here.gaps).toBe(1), patience);
      await nats.stop();
      await Promise.all([here.whole(false), there.whole(false)]);
      expect([here.gaps, there.gaps]).toEqual([2, 1]);
      for (let head = 0; head < 1_000; head += 1) await here.publish(timeline(head));
      expect(heads(here.news)).toHaveLength(1_000);
      expect((await here.bus).unacknowledgedBytes).toBe(0);
      expect(here.dropped).toBe(1_000);
      await nats.start();
      await Promise.all([here.whole(true), there.whole(true)]);
      await vi.waitFor(() => expect(there.gaps).toBeGreaterThanOrEqual(2), patience);
      await here.publish(timeline(1_000));
      await vi.waitFor(() => expect(there.news).toHaveLength(1), patience);
      expect(heads(there.news)).toEqual([1_000]);
      expect(here.events).toEqual(['lost', 'back']);
    });

    test('as often as it comes and goes', async () => {
      const [here, there] = [await post(), await post()];
      for (let round = 1; round <= 3; round += 1) {
        await nats.stop();
        await Promise.all([here.whole(false), there.whole(false)]);
        await nats.start();
        await Promise.all([here.whole(true), there.whole(true)]);
        await here.publish(timeline(round));
        await vi.waitFor(() => expect(heads(there.news).at(-1)).toBe(round), patience);
      }
      expect(here.events).toEqual(['lost', 'back', 'lost', 'back', 'lost', 'back']);
    });

    test('a process starts all the same and joins later', async () => {
      const there = await post();
      await nats.stop();
      const here = await refused(nats.url);
      await here.publish(timeline(1));
      expect(heads(here.news)).toEqual([1]);
      await nats.start();
      await Promise.all([here.whole(true), there.whole(true)]);
      await here.publish(timeline(2));
      await vi.waitFor(() => expect(heads(there.news)).toEqual([2]), patience);
      expect(here.events).toEqual(['lost', 'back']);
    });

    test('ending does not wait for it', async () => {
      const here = await Post.open(nats.url);
      await nats.stop();
      await here.whole(false);
      await here[Symbol.asyncDispose]();
      expect((await here.bus).isConnected).toBe(false);
    });
  });

  describe('when the server hangs', () => {
    afterEach(() => nats.resume());

    test('that is noticed, and over when it goes on', async () => {
      const here = await post();
      nats.pause();
      await here.whole(false);
      expect(here.errors.map(({ message }) => message)).toEqual(['NATS does not answer']);
      nats.resume();
      await here.whole(true);
      expect(here.events).toEqual(['lost', 'back']);
    });

    test('what waits for it is bounded: then it counts as lost', async () => {
      const here = await post();
      const bus = await here.bus;
      nats.pause();
      const large: Notice = {
        kind: 'revoked',
        account: 'ann',
        deviceIds: Array.from({ length: 1_000 }, (_, index) => `device number ${index}`),
      };
      let most = 0;
      for (let count = 0; count < 5_000 && bus.isConnected; count += 1) {
        bus.publish([large]);
        most = Math.max(most, bus.unacknowledgedBytes);
      }
      expect(bus.isConnected).toBe(false);
      expect(most).toBeGreaterThan(1_048_576);
      expect(most).toBeLessThan(17 * 1_048_576);
      expect(here.dropped).toBeGreaterThan(0);
    });

    test('ending waits for it no longer than its time', async () => {
      const here = await Post.open(nats.url);
      nats.pause();
      await here.publish(timeline(1));
      await here[Symbol.asyncDispose]();
      expect((await here.bus).isConnected).toBe(false);
    });
  });

  describe('credentials in the URL', () => {
    const at = (server: TestNats, credentials: string) =>
      server.url.replace('nats://', `nats://${credentials}@`);

    test('user and password, escaped where they must be', async () => {
      const server = open.use(await TestNats.start('--user', 'rel@y', '--pass', 'p:a/ss%'));
      const here = await post(at(server, 'rel%40y:p%3Aa%2Fss%25'));
      expect((await here.bus).isConnected).toBe(true);
    });

    test('a token', async () => {
      const server = open.use(await TestNats.start('--auth', 's3cret'));
      const here = await post(at(server, 's3cret'));
      expect((await here.bus).isConnected).toBe(true);
    });

    test('wrong ones keep the bus away, are tried on, and are shown nowhere', async () => {
      const server = open.use(await TestNats.start('--user', 'relay', '--pass', 'right'));
      const here = await refused(at(server, 'relay:wr0ngpass'));
      const [error] = here.errors as [Error & { cause?: unknown }];
      const shown = [error.message, error.stack, JSON.stringify(error), String(error.cause)];
      expect(shown.join('\n')).toMatch(/authorization violation/i);
      expect(shown.join('\n')).not.toContain('wr0ngpass');
    });
  });

  test.each(['publish', 'subscribe'])('who may not %s is not whole, and says why', async (verb) => {
    const folder = open.use(temporaryFolder());
    const config = join(folder.path, 'nats.conf');
    const permissions = `{ ${verb}: { deny: "posthouse.>" } }`;
    writeFileSync(
      config,
      `authorization { users: [{ user: relay, password: p, permissions: ${permissions} }] }\n`,
    );
    const server = open.use(await TestNats.start('-c', config));
    const here = await refused(server.url.replace('nats://', 'nats://relay:p@'));
    expect(here.errors[0]?.message).toMatch(/permissions violation/i);
  });

  describe('tls://', () => {
    const trusted = getCACertificates('default');
    let server: TestNats;
    let authority: string;

    beforeEach(async () => {
      const { path } = open.use(temporaryFolder());
      const now = Math.floor(Date.now() / 1_000);
      const { cert, key } = await devCertificate(path, ['127.0.0.1', 'localhost'], now);
      const [certFile, keyFile] = [join(path, 'cert.pem'), join(path, 'key.pem')];
      writeFileSync(certFile, cert);
      writeFileSync(keyFile, key);
      authority = readFileSync(join(path, 'tls', 'ca.pem'), 'utf8');
      server = open.use(await TestNats.start('--tls', '--tlscert', certFile, '--tlskey', keyFile));
    });
    afterEach(() => setDefaultCACertificates(trusted));

    test('carries notices over TLS', async () => {
      setDefaultCACertificates([...trusted, authority]);
      const url = server.url.replace('nats:', 'tls:');
      const [here, there] = [await post(url), await post(url)];
      await here.publish(timeline(1));
      await vi.waitFor(() => expect(heads(there.news)).toEqual([1]), patience);
    });

    test('refuses a server whose certificate is not trusted', async () => {
      const here = await refused(server.url.replace('nats:', 'tls:'));
      expect(here.errors[0]?.message).toMatch(/certificate/i);
    });
  });

  test('tls:// takes no server that does not speak it', async () => {
    await refused(nats.url.replace('nats:', 'tls:'));
  });

  test('starts even if no server answers at the address', async () => {
    const here = await post(`nats://127.0.0.1:${await freePort()}`);
    expect((await here.bus).isConnected).toBe(false);
    expect(here.events).toEqual(['lost']);
  });
});
