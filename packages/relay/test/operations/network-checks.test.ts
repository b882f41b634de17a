/** What `posthouse doctor` finds out from other machines: each check that fails, alone. */
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { FakeNode } from '../../../protocol/test/registry-chain/fake-node.ts';
import { loadConfig } from '../../src/config/index.ts';
import { relayMigrations } from '../../src/modules.ts';
import { CheckedRelay } from '../../src/operations/checks/checked-relay.ts';
import { clockOfNodes } from '../../src/operations/checks/clock-of-nodes.ts';
import { clockFinding, clockOfOthers } from '../../src/operations/checks/clock-of-others.ts';
import { registryRecord } from '../../src/operations/checks/registry-record.ts';
import { Relay } from '../../src/relay.ts';
import { issueCertificate } from '../../src/tls/certificate.ts';
import { devCertificate } from '../../src/tls/dev-ca.ts';
import { Cable } from '../support/cable.ts';
import { RelayData } from '../support/engine.ts';
import { freePort } from '../support/ports.ts';
import { patience } from '../support/served-network.ts';
import { CheckedNetwork, checksOf, withOutcome } from './checked-network.ts';

let open: AsyncDisposableStack;
let relays: CheckedNetwork;
beforeAll(async () => {
  open = new AsyncDisposableStack();
  relays = open.use(await CheckedNetwork.start());
}, 120_000);
afterAll(() => open.disposeAsync());

const id = (digit: string) => `0x${digit.repeat(40)}`;

/** Starts an HTTPS server that answers 404, with this time in its answers. */
async function server(
  certificate: { readonly cert: string; readonly key: string },
  secondsAhead = 0,
): Promise<string> {
  const https: Server = createServer(certificate, (_, response) => {
    const date = new Date(Date.now() + secondsAhead * 1_000).toUTCString();
    response.writeHead(404, { date }).end();
  });
  https.listen(0, '127.0.0.1');
  await once(https, 'listening');
  open.defer(() => {
    https.closeAllConnections();
    https.close();
  });
  return `https://127.0.0.1:${(https.address() as AddressInfo).port}/svc/v1`;
}

/** A certificate of the authority that both relays trust. */
const trusted = () =>
  devCertificate(`${relays.folder}/other`, ['127.0.0.1'], Math.floor(Date.now() / 1_000), {
    authorityFolder: `${relays.folder}/tls`,
  });

test('07 §A3: a record that is suspended, disabled, missing or of another address fails alone', async () => {
  const { a, b } = relays;
  const records = [
    [{ status: 'suspended' as const }, 'suspended', 'ask the governance'],
    [{ status: 'disabled' as const }, 'disabled', 'set its status to active'],
    [{ endpoint: 'https://old.example/svc/v1' }, 'https://old.example', 'change the address'],
    [{ relay_id: id('1') }, 'no record of this relay', 'enter it'],
  ] as const;
  for (const [more, seen, cure] of records) {
    // Without another relay, none is asked to dial.
    const registry = relays.registryOf(relays.entry(a, more));
    const found = await checksOf({ ...relays.settings, registry, federation: { listen: '' } });
    expect(found.registry).toMatchObject({
      outcome: 'failed',
      seen: expect.stringContaining(seen),
      cure: expect.stringContaining(cure),
    });
    expect(withOutcome(found, 'failed')).not.toContain('public certificate');
  }
  expect(b.isRunning).toBe(true);
}, 120_000);

test('07 §A9: another relay under the public name is found out', async () => {
  const { a, b } = relays;
  const [endpoint = ''] = b.server.https;
  const found = await checksOf({
    ...relays.settings,
    public: { https: [endpoint], peer: `/ip4/127.0.0.1/tcp/${a.server.peerPort}` },
    registry: relays.registryOf(relays.entry(a, { endpoint })),
  });
  expect(found['public descriptor']).toMatchObject({
    outcome: 'failed',
    seen: `another relay answers at ${endpoint}, or none`,
    cure: expect.stringContaining('DNS'),
  });
  expect(withOutcome(found, 'failed')).toEqual(['public descriptor', 'public websocket']);
}, 60_000);

test('07 §A9: a relay that runs with other addresses than the configuration is found out', async () => {
  const found = await checksOf({
    ...relays.settings,
    public: { peer: '/dns4/other.example/tcp/4201' },
    registry: relays.registryOf(relays.entry(relays.a)),
  });
  expect(withOutcome(found, 'failed')).toEqual(['public descriptor']);
  expect(found['public descriptor']?.seen).toMatch(/lacks \/dns4\/other.example.* has \/ip4/);
}, 60_000);

describe('a certificate of the public name', () => {
  const findings = async (endpoint: string) =>
    await checksOf({
      ...relays.settings,
      public: { https: [endpoint] },
      registry: relays.registryOf(relays.entry(relays.a, { endpoint })),
    });

  /** Of an authority of its own; days from now. */
  const issued = (days: number) => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const publicKey = createPublicKey(privateKey);
    const now = Math.floor(Date.now() / 1_000);
    const cert = issueCertificate(
      {
        ...{ subject: 'relay', publicKey, issuer: { name: 'unknown', publicKey } },
        ...{ notBefore: now - 90 * 86_400, notAfter: now + days * 86_400, hosts: ['127.0.0.1'] },
      },
      privateKey,
    );
    return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string };
  };

  test('07 §A9: one that expired fails, with its date', async () => {
    const found = await findings(await server(issued(-2)));
    expect(found['public certificate']).toMatchObject({
      outcome: 'failed',
      seen: expect.stringMatching(/^127\.0\.0\.1: expired on 20/),
      cure: expect.stringContaining('renew'),
    });
    // Nothing that needs TLS works without.
    expect(withOutcome(found, 'failed')).toEqual([
      ...['public certificate', 'public descriptor', 'public websocket'],
    ]);
  }, 60_000);

  test('07 §A9: one of an unknown authority fails, with the reason', async () => {
    const found = await findings(await server(issued(60)));
    expect(found['public certificate']).toMatchObject({
      outcome: 'failed',
      seen: expect.stringContaining('refuse the certificate'),
      cure: expect.stringContaining('federation.ca'),
    });
  }, 60_000);
});

test('07 §A9: a name at which nothing listens fails, with the cause', async () => {
  const endpoint = `https://127.0.0.1:${await freePort()}/svc/v1`;
  const found = await checksOf({
    ...relays.settings,
    public: { https: [endpoint] },
    registry: relays.registryOf(relays.entry(relays.a, { endpoint })),
  });
  expect(found['public certificate']).toMatchObject({
    outcome: 'failed',
    seen: expect.stringContaining('ECONNREFUSED'),
  });
}, 60_000);

test('07 §B4: a private address under the public name is refused as others refuse it', async () => {
  const { federation } = relays.settings;
  const found = await checksOf({
    ...relays.settings,
    federation: { ...federation, allowPrivate: false },
    registry: relays.registryOf(relays.entry(relays.a)),
  });
  expect(found['public descriptor']).toMatchObject({
    outcome: 'failed',
    seen: '127.0.0.1: this relay does not connect to it',
    cure: expect.stringContaining('private address'),
  });
}, 60_000);

test('a relay for development whose port for relays the system chose is no other configuration', async () => {
  await using data = await RelayData.empty();
  const listen = `127.0.0.1:${await freePort()}`;
  const values = { dev: true, ...data.config, listen };
  await using _ = await Relay.start(values, { log: pino({ level: 'silent' }) });
  const found = await checksOf(values, 'network');
  expect(found['public descriptor']).toMatchObject({ outcome: 'ok' });
}, 60_000);

test('a node of the chain that never ends its answers does not hold a check', async () => {
  const node = open.use(await FakeNode.start(relays.a.server.network.context));
  node.fate = (method) => (method === 'getversion' ? 'answer' : 'hang');
  const values = { ...relays.settings, registry: { nodes: [node.url] } };
  const load = () => loadConfig({ values });
  await using relay = new CheckedRelay({ load, migrations: relayMigrations });
  for (const { find } of [registryRecord, clockOfOthers]) {
    const finding = find(relay, AbortSignal.timeout(500));
    await expect(finding).rejects.toMatchObject({ name: 'TimeoutError' });
  }
  expect(node.asked).toEqual(['getversion', 'getRelay', 'getversion', 'listRelays']);
}, 60_000);

describe('the clock', () => {
  test.each([
    [2, 'ok', 'agrees with 1 other relay'],
    [60, 'warning', /^(59|60|61) seconds slow, compared with 1 other relay$/],
    [
      -900,
      'failed',
      /^(899|900|901) seconds fast, compared with 1 other relay; others tolerate 300$/,
    ],
  ])(
    '01 §11: with another relay %d seconds ahead is %s',
    async (seconds, outcome, seen) => {
      const other = { relay_id: id('2'), endpoint: await server(await trusted(), seconds) };
      const registry = relays.registryOf(relays.entry(relays.a), relays.entry(relays.b, other));
      const found = await checksOf({ ...relays.settings, registry });
      expect(found['clock of others']).toMatchObject({
        outcome,
        seen:
          typeof seen === 'string' ? expect.stringContaining(seen) : expect.stringMatching(seen),
      });
    },
    60_000,
  );

  test('07 §A6: with the nodes of the chain it is compared too, whatever they answer', async () => {
    const nodes = [await server(await trusted(), 60), 'https://127.0.0.1:1/'];
    const load = () => loadConfig({ values: { ...relays.settings, registry: { nodes } } });
    await using relay = new CheckedRelay({ load, migrations: relayMigrations });
    expect(await clockOfNodes.find(relay, AbortSignal.timeout(20_000))).toMatchObject({
      outcome: 'warning',
      seen: expect.stringMatching(/^(59|60|61) seconds slow, compared with 1 node$/),
    });
    const file = await checksOf(relays.settings);
    expect(file['clock of nodes']).toMatchObject({ outcome: 'skipped' });
  }, 60_000);

  test.each([
    [[0], 'ok'],
    [[5, -5], 'ok'],
    [[6], 'warning'],
    [[400, 1, 2], 'ok'],
    [[400, 1, 400], 'failed'],
    [[300], 'warning'],
    [[301], 'failed'],
    [[-301, -301], 'failed'],
  ] as const)(
    '01 §11: with the differences %j it is %s: the median decides',
    (differences, outcome) => {
      expect(clockFinding(differences, 300).outcome).toBe(outcome);
    },
  );
});

describe('07 §B2: the port for other relays', () => {
  /** Starts relays of which a says that it is reached over a cable. */
  async function cabled() {
    const port = await freePort();
    const cable = open.use(await Cable.to(port));
    const config = {
      public: { peer: `/ip4/127.0.0.1/tcp/${cable.port}` },
      federation: { listen: `127.0.0.1:${port}` },
    };
    return { cable, relays: open.use(await CheckedNetwork.start(config)) };
  }

  /** Waits until a is connected, by its own dials alone. */
  async function connected({ a }: CheckedNetwork): Promise<void> {
    await vi.waitFor(() => {
      a.server.wakeJobs();
      expect(a.server.context.metrics.value('peers', { state: 'connected' })).toBe(1);
    }, patience);
  }

  test('that is closed fails alone, with the address', async () => {
    const { cable, relays: closed } = await cabled();
    cable.cut();
    await connected(closed);
    const found = await checksOf(closed.settings);
    expect(found['peer port']).toEqual({
      check: 'peer port',
      outcome: 'failed',
      seen: `/ip4/127.0.0.1/tcp/${cable.port} refused the connection, or does not lead to a public address (1 of 1 relay)`,
      cure: expect.stringContaining('firewall'),
    });
    expect(withOutcome(found, 'failed')).toEqual(['peer port']);
  }, 120_000);

  test('that accepts and hangs fails alone: it did not answer in time', async () => {
    const { cable, relays: hanging } = await cabled();
    cable.drop();
    cable.hang();
    await connected(hanging);
    const found = await checksOf(hanging.settings);
    expect(found['peer port']?.seen).toContain('did not answer in time, as if a firewall');
    expect(withOutcome(found, 'failed')).toEqual(['peer port']);
    cable.restore();
  }, 120_000);

  test('with another Peer ID at the address fails alone', async () => {
    const portOfB = await freePort();
    const misled = open.use(
      await CheckedNetwork.start(
        { public: { peer: `/ip4/127.0.0.1/tcp/${portOfB}` } },
        { federation: { listen: `127.0.0.1:${portOfB}` } },
      ),
    );
    const found = await checksOf(misled.settings);
    expect(found['peer port']?.seen).toContain('is the address of another relay');
    expect(withOutcome(found, 'failed')).toEqual(['peer port']);
  }, 120_000);

  test('is not tried for a relay that is alone, which is said in words', async () => {
    const peer = `/ip4/127.0.0.1/tcp/${relays.a.server.peerPort}`;
    const alone = {
      public: { peer },
      federation: { listen: '', ca: relays.network.authorityFile },
    };
    const found = await checksOf({ ...relays.settings, ...alone });
    for (const name of ['clock of others', 'peer port', 'known to others']) {
      expect(found[name]).toMatchObject({
        outcome: 'skipped',
        seen: expect.stringContaining('federation.listen is empty'),
      });
    }
    expect(withOutcome(found, 'failed')).toEqual([]);
  }, 60_000);
});
