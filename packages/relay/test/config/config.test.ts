import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { explainConfig } from '../../src/config/explain.ts';
import { ConfigError, loadConfig, type PartialConfig } from '../../src/config/index.ts';
import { configSchemaText } from '../../src/config/json-schema.ts';
import { settings } from '../../src/config/settings.ts';
import { defaultLimits } from '../../src/limits.ts';
import { temporaryFolder } from '../support/folder.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

const network = `neo:860833102:0x${'12'.repeat(20)}`;
const production = {
  network,
  public: { https: ['https://relay.example/svc/v1'], peer: '/dns4/relay.example/tcp/4201' },
  tls: { mode: 'off' },
} satisfies PartialConfig;

function file(content: unknown): string {
  const path = join(folder.path, 'config.json');
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

function problems(load: () => unknown): readonly string[] {
  try {
    load();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('storage and bus', () => {
  const url = 'postgres://db.example/relay';
  const nats = 'nats://bus.example:4222';
  const wrong = (values: PartialConfig) =>
    problems(() => loadConfig({ values: { ...production, ...values } }));

  test('one process on SQLite is the default', () => {
    const { config } = loadConfig({ values: production });
    expect(config.storage).toEqual({ engine: 'sqlite', url: '', connections: 10 });
    expect(config.bus).toEqual({ nats: '' });
  });

  test('PostgreSQL needs a URL; NATS is optional', () => {
    expect(wrong({ storage: { engine: 'postgres', url } })).toEqual([]);
    expect(wrong({ storage: { engine: 'postgres', url }, bus: { nats } })).toEqual([]);
    expect(wrong({ storage: { engine: 'postgres' } })).toEqual([
      'storage.url: expected a value for the engine postgres, found none',
    ]);
  });

  test('settings for PostgreSQL only are refused with SQLite', () => {
    expect(wrong({ storage: { url } })).toEqual([
      'storage.engine: expected postgres because storage.url is set, found "sqlite"',
    ]);
    expect(wrong({ bus: { nats } })).toEqual([
      'bus.nats: expected storage.engine postgres with it; SQLite is for one process',
    ]);
  });

  test('0041: an admin token is refused with an address that others reach in the clear', () => {
    const refused = [
      'operations.tls: expected true because operations.adminTokenFile is set and operations.listen is not on loopback, found false',
    ];
    const adminTokenFile = 'admin.token';
    const tls = { mode: 'files' as const, certificate: 'cert.pem', key: 'key.pem' };
    const exposed = ['0.0.0.0:9464', '[::]:9464', '10.0.0.1:1', '127.example:1', 'localhost.x:1'];
    for (const listen of exposed) {
      expect(wrong({ operations: { listen, adminTokenFile } })).toEqual(refused);
      expect(wrong({ tls, operations: { listen, adminTokenFile, tls: true } })).toEqual([]);
      expect(wrong({ operations: { listen } })).toEqual([]);
    }
    for (const listen of ['', '127.0.0.1:9464', '127.1.2.3:1', '[::1]:9464', 'localhost:0']) {
      expect(wrong({ operations: { listen, adminTokenFile } })).toEqual([]);
    }
    expect(wrong({ operations: { listen: '127.0.0.1:1', tls: true } })).toEqual([
      'operations.tls: expected false because tls.mode is off, found true',
    ]);
  });

  test('invalid URLs are refused', () => {
    expect(wrong({ storage: { engine: 'postgres', url: 'postgres://[' } })).toEqual([
      'storage.url: expected a URL with / ? # @ in its password as %2F %3F %23 %40',
    ]);
    expect(wrong({ storage: { engine: 'postgres', url }, bus: { nats: 'nats://[' } })).toEqual([
      'bus.nats: expected a URL with / ? # @ in its password as %2F %3F %23 %40',
    ]);
  });

  test.each(['12/3@db.example/relay', '12#3@db.example/relay', '12?3@db.example/relay'])(
    'a URL whose password is not percent-encoded is refused: u:%s',
    (rest) => {
      expect(wrong({ storage: { engine: 'postgres', url: `postgres://u:${rest}` } })).toEqual([
        'storage.url: expected a URL with / ? # @ in its password as %2F %3F %23 %40',
      ]);
    },
  );
});

describe('layers', () => {
  test('everything has a default but what only an operator can know', () => {
    expect(problems(() => loadConfig({}))).toEqual([
      'network: expected a value without --dev, found none',
      'public.peer: expected a value without --dev, found none',
      'tls.certificate: expected a value in mode files, found none',
      'tls.key: expected a value in mode files, found none',
    ]);
  });

  test('making keys needs the network only, a descriptor no certificate', () => {
    const missing = (values: PartialConfig, purpose: 'keys' | 'descriptor') =>
      problems(() => loadConfig({ values, purpose })).map((problem) => problem.split(':')[0]);
    expect(missing({}, 'keys')).toEqual(['network']);
    expect(missing({ network }, 'keys')).toEqual([]);
    expect(missing({ network }, 'descriptor')).toEqual(['public.peer']);
    const { peer } = production.public;
    expect(missing({ network, public: { peer } }, 'descriptor')).toEqual([]);
    expect(missing({ dev: true, listen: '127.0.0.1:0' }, 'descriptor')).toEqual(['listen']);
    expect(missing({ dev: true, listen: '127.0.0.1:1' }, 'descriptor')).toEqual([]);
  });

  test('--dev needs nothing', () => {
    const { config } = loadConfig({ flags: { dev: true } });
    expect(config).toMatchObject({
      network: `neo:0:0x${'0'.repeat(40)}`,
      listen: '127.0.0.1:8443',
      tls: { mode: 'dev' },
      registration: 'open',
      federation: { listen: '127.0.0.1:0', ca: '', allowPrivate: true, registryGrace: 21_600 },
      limits: {
        ...defaultLimits,
        accountRate: 100_000,
        accountBurst: 1_000_000,
        clockJump: 100_000_000_000,
        diskFree: 1,
        memory: 1_125_899_906_842_624,
        addressRate: 100_000,
        addressBurst: 1_000_000,
        addressBytes: 1_073_741_824,
        addressBytesBurst: 1_073_741_824,
        accountBytes: 1_073_741_824,
        accountBytesBurst: 1_073_741_824,
        receivedBytesPerAddress: 67_108_864,
        receivedBytesPerAccount: 134_217_728,
        waitingBytesPerAddress: 67_108_864,
        waitingBytesPerAccount: 134_217_728,
        unboundTimeout: 3_600_000,
        challenges: 1_000_000,
        challengesPerAddress: 1_000_000,
        challengesOfAccount: 10_000,
        stagedStates: 1_000_000,
        stagedStatesPerAddress: 1_000_000,
        accountsPerAddress: 1_000_000,
        accountDailyBytes: 1_125_899_906_842_624,
        groupDailyBytes: 1_125_899_906_842_624,
        channelDailyBytes: 1_125_899_906_842_624,
        accountStoredBytes: 1_125_899_906_842_624,
        groupStoredBytes: 1_125_899_906_842_624,
        channelStoredBytes: 1_125_899_906_842_624,
        accountReceivedDailyBytes: 1_125_899_906_842_624,
        foreignRelayDailyBytes: 1_125_899_906_842_624,
        foreignDailyBytes: 1_125_899_906_842_624,
        sessionsPerMinute: 10_000,
        sessionsOfDevice: 10_000,
        sessionsOfAccount: 100_000,
        subscriptionsPerAccount: 250_000,
        connectionsPerAddress: 20_000,
        handshakeRate: 100_000,
        handshakeBurst: 1_000_000,
        addressHandshakeRate: 100_000,
        addressHandshakeBurst: 1_000_000,
        handshakesUnfinished: 20_000,
        addressHandshakesUnfinished: 20_000,
        routeLookupRate: 10_000,
        routeLookupBurst: 100_000,
        relayQueryRate: 10_000,
        relayQueryBurst: 100_000,
        relayQueryNewAccounts: 1_000_000,
        federationLookupRate: 1_000,
        federationAddressLookupRate: 1_000,
        federationAddressLookupBurst: 1_000,
        peerHandshakesPerAddress: 64,
        peerHandshakeRate: 1_000,
        peerHandshakeBurst: 10_000,
      },
    });
  });

  test('file, environment and command line come one over the other', () => {
    const path = file({ ...production, name: 'file', listen: '127.0.0.1:1', log: 'warn' });
    const { config, sources } = loadConfig({
      file: path,
      environment: { POSTHOUSE_NAME: 'environment', POSTHOUSE_LISTEN: '127.0.0.1:2' },
      flags: { listen: '127.0.0.1:3' },
    });
    expect(config).toMatchObject({ log: 'warn', name: 'environment', listen: '127.0.0.1:3' });
    expect(sources.get('log')).toBe(`file ${path}`);
    expect(sources.get('name')).toBe('environment POSTHOUSE_NAME');
    expect(sources.get('listen')).toBe('command line');
    expect(sources.get('service')).toBe('default');
  });

  test('every kind of value can stand in the environment', () => {
    const { config } = loadConfig({
      environment: {
        POSTHOUSE_DEV: 'true',
        POSTHOUSE_LIMITS_PAGE_SIZE: '7',
        POSTHOUSE_TRUSTED_PROXIES: '10.0.0.0/8, ::1',
        POSTHOUSE_TLS_MODE: 'dev',
      },
    });
    expect(config).toMatchObject({
      dev: true,
      limits: { pageSize: 7 },
      trustedProxies: ['10.0.0.0/8', '::1'],
    });
  });

  test('a name for the schema is for editors', () => {
    expect(problems(() => loadConfig({ file: file({ ...production, $schema: 'x' }) }))).toEqual([]);
  });
});

describe('wrong values', () => {
  test('each is named with its path, what was expected, what was found, and where', () => {
    const path = file({ ...production, name: 7, limits: { pageSize: 0, nonsense: 1 }, nme: 'x' });
    const environment = { POSTHOUSE_LIMITS_CONNECTIONS: 'many', POSTHOUSE_LOG: 'loud' };
    expect(problems(() => loadConfig({ file: path, environment })).toSorted()).toEqual([
      'limits.connections: expected an integer from 1, found "many" ' +
        '(environment POSTHOUSE_LIMITS_CONNECTIONS)',
      `limits.nonsense: there is no such key (file ${path})`.replace('file ', ''),
      `limits.pageSize: expected an integer from 1, found 0 (file ${path})`,
      'log: expected one of silent, error, warn, info, debug, found "loud" ' +
        '(environment POSTHOUSE_LOG)',
      `name: expected a text, found 7 (file ${path})`,
      `nme: there is no such key, did you mean name? (${path})`,
    ]);
  });

  test('a variable that no setting has is refused, with the one that was meant', () => {
    const environment = { POSTHOUSE_LIMITS_PAGESIZE: '5', POSTHOUSE_FROBNICATE: '1', HOME: '/' };
    expect(problems(() => loadConfig({ flags: { dev: true }, environment }))).toEqual([
      'POSTHOUSE_LIMITS_PAGESIZE: there is no such variable, ' +
        'did you mean POSTHOUSE_LIMITS_PAGE_SIZE? (environment)',
      'POSTHOUSE_FROBNICATE: there is no such variable (environment)',
    ]);
  });

  test('variables that Kubernetes and the tests of the house set are none of ours', () => {
    const environment = {
      POSTHOUSE_SERVICE_HOST: '10.0.0.1',
      POSTHOUSE_SERVICE_PORT_HTTPS: '8443',
      POSTHOUSE_PORT: 'tcp://10.0.0.1:8443',
      POSTHOUSE_PORT_8443_TCP_ADDR: '10.0.0.1',
      POSTHOUSE_INTEROP_VECTORS: '/vectors',
      POSTHOUSE_CONFIG: 'config.json',
    };
    expect(loadConfig({ flags: { dev: true }, environment }).config.service).toBe('svc');
  });

  test('a file that is missing or no JSON is said to be', () => {
    expect(problems(() => loadConfig({ file: join(folder.path, 'none.json') }))).toEqual([
      expect.stringMatching(/none\.json: there is no such file/),
    ]);
    expect(problems(() => loadConfig({ file: file('{') }))).toEqual([
      expect.stringMatching(/config\.json: is not JSON: /),
    ]);
    expect(problems(() => loadConfig({ file: file([]) }))).toEqual([
      expect.stringMatching(/config\.json: expected an object/),
    ]);
  });

  const withPublic = (change: object) => ({
    ...production,
    public: { ...production.public, ...change },
  });
  test.each<[string, object, RegExp]>([
    [
      'a network with a leading zero',
      { ...production, network: network.replace('neo:8', 'neo:08') },
      /^network: /,
    ],
    ['a service word in capitals', { ...production, service: 'Svc' }, /^service: /],
    ['a name of white space', { ...production, name: ' ' }, /^name: only white space/],
    ['a name over 256 bytes', { ...production, name: 'ä'.repeat(129) }, /^name: over 256 bytes/],
    ['a port out of range', { ...production, listen: '127.0.0.1:65536' }, /^listen: .*65535/],
    [
      'a port for relays out of range',
      { ...production, federation: { listen: '0.0.0.0:65536' } },
      /^federation\.listen: .*65535/,
    ],
    ['an address without a port', { ...production, listen: '127.0.0.1' }, /^listen: /],
    ['an HTTP address', withPublic({ https: ['http://relay.example'] }), /^public\.https: /],
    ['a query in an address', withPublic({ https: ['https://relay.example/?'] }), /^public\.https/],
    [
      'a slash at the end',
      withPublic({ https: ['https://relay.example/svc/'] }),
      /slash at its end/,
    ],
    [
      'two addresses of one path',
      withPublic({ https: ['https://a.example/svc/v1', 'https://b.example/svc/v1'] }),
      /another address has the same path/,
    ],
    ['an https address under wss', withPublic({ wss: ['https://relay.example'] }), /^public\.wss/],
    ['a peer address with a Peer ID', withPublic({ peer: '/ip4/192.0.2.1/tcp/1/p2p/x' }), /peer/],
    ['a peer address without a port', withPublic({ peer: '/ip4/192.0.2.1' }), /^public\.peer/],
    ['a proxy that is a name', { ...production, trustedProxies: ['proxy'] }, /^trustedProxies/],
    ['a subnet too long', { ...production, trustedProxies: ['10.0.0.0/33'] }, /^trustedProxies/],
    [
      'no public address behind a proxy',
      { network, tls: { mode: 'off' }, public: { peer: '/ip4/192.0.2.1/tcp/1' } },
      /^public\.https: expected a value because tls\.mode is off/,
    ],
    [
      'an authority for development with an own certificate',
      { ...production, tls: { mode: 'off', authority: '/tmp/authority' } },
      /^tls\.mode: expected dev because tls\.authority is set, found "off"$/m,
    ],
    [
      'no public address while listening everywhere',
      { dev: true, listen: '0.0.0.0:1' },
      /^public\.https: expected a value because listen covers every address/,
    ],
  ])('%s is refused', (_, content, expected) => {
    expect(problems(() => loadConfig({ file: file(content) }))).toEqual([
      expect.stringMatching(expected),
    ]);
  });
});

describe('limits depend on each other', () => {
  const limited = (limits: object) =>
    problems(() => loadConfig({ values: { ...production, limits } as unknown as PartialConfig }));

  test('the defaults fit', () => expect(limited({})).toEqual([]));

  test.each([
    ['pageBytes', { pageBytes: 1_032_193 }, { pageBytes: 1_032_192 }],
    ['httpBodyBytes', { httpBodyBytes: 1_048_575 }, { httpBodyBytes: 1_048_576 }],
    ['sendBufferBytes', { sendBufferBytes: 1_048_575 }, { sendBufferBytes: 1_048_576 }],
    ['pageSize', { pageSize: 501 }, { pageSize: 500 }],
    ['connectionsPerAddress', { connectionsPerAddress: 20_001 }, { connectionsPerAddress: 20_000 }],
    ['accountBurst', { accountBurst: 999 }, { accountBurst: 1_000 }],
    ['addressBytesBurst', { addressBytesBurst: 524_287 }, { addressBytesBurst: 524_288 }],
    ['addressBurst', { addressRate: 10, addressBurst: 9 }, { addressRate: 10, addressBurst: 10 }],
  ])('%s over the edge is refused, at the edge it is not', (name, over, at) => {
    expect(limited(over)).toEqual([expect.stringMatching(`^limits.${name}: `)]);
    expect(limited(at)).toEqual([]);
  });
});

describe('what an operator reads', () => {
  test('explain and errors show no password of a URL', () => {
    const url = 'postgres://posthouse:s3cret@db.example:5432/relay?sslmode=verify-full';
    const nats = 'nats://relay:s3cret@bus.example:4222';
    const storage = { engine: 'postgres', url } as const;
    const shared = { ...production, storage, bus: { nats } };
    const explained = explainConfig(loadConfig({ values: shared }));
    expect(explained).not.toContain('s3cret');
    expect(explained).toContain('postgres://posthouse:[secret]@db.example:5432/relay?sslmode');
    expect(explained).toContain('nats://relay:[secret]@bus.example:4222');
    const wrong = { ...shared, storage: { ...storage, url: `mysql${url.slice(8)}` } };
    const found = problems(() => loadConfig({ values: wrong }));
    expect(found).toHaveLength(1);
    expect(found[0]).toContain('storage.url: expected a text that matches');
    expect(found[0]).not.toContain('s3cret');
    const asParameter = { engine: 'postgres', url: 'postgres://db/relay?password=s3cret' } as const;
    const loaded = loadConfig({ values: { ...production, storage: asParameter } });
    expect(explainConfig(loaded)).not.toContain('s3cret');
  });

  const read = (values: PartialConfig): string => {
    try {
      return explainConfig(loadConfig({ values: { ...production, ...values } }));
    } catch (error) {
      if (error instanceof ConfigError) return error.message;
      throw error;
    }
  };

  test.each([
    'postgres://relay:qz"zq@db/relay',
    "postgres://relay:qz'zq@db/relay",
    'postgres://relay:qz\\zq@db/relay',
    'postgres://relay:qz zq@db/relay',
    'postgres://relay:qz\nzq@db/relay',
    'postgres://relay:qz%20zq@db/relay',
    'postgres://relay:qz@zq@db/relay',
    'postgres://relay:12/qzzq@db/relay',
    'postgres://relay:12#qzzq@db/relay',
    'postgres://relay:12?qzzq@db/relay',
    'postgres://relay@db/relay?sslpassword=qzzq',
    'postgres://relay@db/relay?%70assword=qz zq',
    'host=db password=qzzq user=relay',
    "password = 'qz zq' host=db",
    'relay:qzzq@db/relay',
  ])('no password of %j is shown, right or wrong', (url) => {
    const text = read({ storage: { engine: 'postgres', url } });
    expect(text).toContain('storage.url');
    expect(text).not.toMatch(/qz|zq/);
  });

  test.each(['nats://qzzq@bus:4222', 'tls://qz/zq@bus', 'ws://qzzq@bus', 'nats://u:12/qz@bus'])(
    'no token of %j is shown, right or wrong',
    (nats) => {
      const storage = { engine: 'postgres', url: 'postgres://relay@db/relay' } as const;
      const text = read({ storage, bus: { nats } });
      expect(text).toContain('bus.nats');
      expect(text).not.toMatch(/qz|zq/);
    },
  );

  test('a file that is not JSON is told of without what is in it', () => {
    const path = file('{"storage":{"engine":"postgres",\n"url": qzqzqz}}');
    const found = problems(() => loadConfig({ file: path }));
    expect(found).toEqual([expect.stringContaining('is not JSON: Unexpected token')]);
    expect(found[0]).not.toContain('zqz');
  });

  test('explain names every key, its value, its source, its meaning and its variable', () => {
    const text = explainConfig(
      loadConfig({ flags: { dev: true }, environment: { POSTHOUSE_LOG: 'debug' } }),
    );
    for (const { path, meaning, variable } of settings) {
      expect(text).toContain(`${path} = `);
      expect(text).toContain(`    ${meaning} ${variable}\n`);
      expect(meaning).not.toBe('');
    }
    expect(text).toContain('log = "debug"  (environment POSTHOUSE_LOG)');
    expect(text).toContain('limits.pageSize = 100  (default)');
    expect(text).toContain('tls.mode = "dev"  (default of --dev)');
  });

  test('decision 0032: with --dev, a command stores attachments in its data folder unless it is told otherwise', () => {
    const flags = { dev: true, data: '/relay' };
    const attachments = (more: Parameters<typeof loadConfig>[0] = {}) =>
      loadConfig({ flags, ...more }).config.blobs.folder;
    expect(attachments()).toBe(join('/relay', 'attachments'));
    expect(explainConfig(loadConfig({ flags }))).toMatch(
      /^blobs\.folder = ".*attachments" {2}\(default of --dev\)$/m,
    );
    expect(attachments({ environment: { POSTHOUSE_BLOBS_FOLDER: '' } })).toBe('');
    expect(attachments({ environment: { POSTHOUSE_BLOBS_FOLDER: '/other' } })).toBe('/other');
    // Several processes would need one folder; a program says itself what it stores.
    const postgres = {
      POSTHOUSE_STORAGE_ENGINE: 'postgres',
      POSTHOUSE_STORAGE_URL: 'postgres://u@h/d',
    };
    expect(attachments({ environment: postgres })).toBe('');
    expect(attachments({ flags: {}, values: { dev: true, data: '/relay' } })).toBe('');
    expect(attachments({ flags: { dev: true }, environment: { POSTHOUSE_DATA: '' } })).toBe('');
  });

  test('the JSON Schema is current: node scripts/config-schema.ts writes it', () => {
    const path = new URL('../../config.schema.json', import.meta.url);
    expect(readFileSync(path, 'utf8')).toBe(configSchemaText());
  });

  test('the JSON Schema knows every key and no other', () => {
    const schema = JSON.parse(configSchemaText());
    expect(schema).toMatchObject({ additionalProperties: false });
    expect(schema).not.toHaveProperty('required');
    expect(schema.properties.limits).toMatchObject({ additionalProperties: false });
    expect(Object.keys(schema.properties.limits.properties)).toEqual(Object.keys(defaultLimits));
  });
});

describe('07 §A6: the registry is a file, or nodes of the chain', () => {
  const registryOf = (registry: unknown) =>
    loadConfig({ values: { dev: true, registry } as never }).config.registry;
  const failure = (registry: unknown) => problems(() => registryOf(registry)).join('\n');

  test('both forms are accepted', () => {
    expect(registryOf('registry.json')).toBe('registry.json');
    const nodes = ['https://a.example', 'https://b.example'];
    expect(registryOf({ nodes })).toEqual({ nodes });
    expect(registryOf({ nodes, agree: 2 })).toEqual({ nodes, agree: 2 });
  });

  test('a variable has the same as JSON', () => {
    const environment = { POSTHOUSE_REGISTRY: '{"nodes":["https://a.example"],"agree":1}' };
    const { config } = loadConfig({ flags: { dev: true }, environment });
    expect(config.registry).toEqual({ nodes: ['https://a.example'], agree: 1 });
    const file = { POSTHOUSE_REGISTRY: '/etc/registry.json' };
    expect(loadConfig({ flags: { dev: true }, environment: file }).config.registry).toBe(
      '/etc/registry.json',
    );
  });

  test.each([
    '{"nodes":["https://node.example/sekret"],}',
    ' {"nodes":',
    'https://node.example/sekret',
  ])('%j is neither a path nor JSON: it is refused and not shown', (text) => {
    const environment = { POSTHOUSE_REGISTRY: text };
    const found = problems(() => loadConfig({ flags: { dev: true }, environment })).join('\n');
    expect(found).toContain('registry: expected a path, or nodes as');
    expect(found).not.toContain('sekret');
  });

  test.each([
    [{ nodes: [] }, 'registry: expected a text or an object'],
    [{ nodes: ['http://node.example'] }, 'registry.nodes.0: node must have https://'],
    [{ nodes: ['https://a.example'], agree: 2 }, 'registry.nodes: has one host only'],
    [{ nodes: ['https://a.example'], agreed: 2 }, 'registry.agreed: there is no such key'],
    [{ nodes: ['https://a.example'], agree: 3 }, 'registry: expected a text or an object'],
    [5, 'registry: expected a text or an object, found 5'],
  ])('%j is refused', (registry, message) => {
    expect(failure(registry)).toContain(message);
  });

  test('keys in the paths of nodes are shown nowhere', () => {
    const nodes = ['https://node.example/v1/sekret', 'https://node.example:10331/?key=sekret'];
    const loaded = loadConfig({ values: { dev: true, registry: { nodes } } });
    expect(explainConfig(loaded)).toContain(
      'registry = {"nodes":["https://node.example/[secret]","https://node.example:10331/[secret]"]}',
    );
    expect(explainConfig(loaded)).not.toContain('sekret');
    expect(failure({ nodes, agree: 9 })).not.toContain('sekret');
    expect(failure({ nodes: [...nodes, 'http://node.example/sekret'] })).not.toContain('sekret');
    expect(failure({ nodes: nodes[0] })).not.toContain('sekret');
    expect(failure({ nodes: ['https://ann:sekret@node.example'], agree: 9 })).not.toContain(
      'sekret',
    );
  });
});
