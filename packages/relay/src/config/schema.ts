import { RegistryNodes, type Static, Type } from '@posthouse/protocol';
import { RelayLimits } from '../limits.ts';

const text = (description: string, options: { default?: string; pattern?: string } = {}) =>
  Type.String({ description, ...options });
const texts = (description: string) =>
  Type.Array(Type.String(), { description, default: [] as string[] });
/** A line of at most 500 characters. */
const shortText = '^[^\\u0000-\\u001f\\u007f]{0,500}$';
/** `host:port` or `[ipv6]:port`. */
const hostAndPort = '(?:\\[[0-9a-fA-F:.]+\\]|[^\\[\\]:/\\s]+):(?:0|[1-9][0-9]{0,4})';

/** Everything an operator can set, with its meaning and default. The one list of keys. */
export const RelayConfig = Type.Object(
  {
    network: text('Network context `neo:<magic>:<registry>` (01 section 1). --dev has one.', {
      pattern: '^neo:(0|[1-9][0-9]{0,9}):0x[0-9a-f]{40}$',
    }),
    service: text('Service word of the network; all its parties use the same.', {
      default: 'svc',
      pattern: '^[a-z][a-z0-9]{0,31}$',
    }),
    data: text('Folder for the database, keys and certificates.', { default: 'posthouse-data' }),
    name: text('What users are shown; at most 256 bytes.', { default: 'Posthouse' }),
    about: Type.Object({
      operator: text('Who runs the relay, for its page and `relay.info`; empty: not said.', {
        default: '',
        pattern: shortText,
      }),
      contact: text('How to reach the operator: an address such as `mailto:...`, or words.', {
        default: '',
        pattern: shortText,
      }),
      terms: text('Terms of use: an `https` address, or words.', {
        default: '',
        pattern: shortText,
      }),
      policy: text('Privacy and moderation: an `https` address, or words.', {
        default: '',
        pattern: shortText,
      }),
      version: Type.Boolean({
        description:
          'Whether strangers are told program and version, on the page and by `relay.info`.',
        default: true,
      }),
    }),
    listen: text('Address to listen on, `host:port` or `[ipv6]:port`; port 0 takes any.', {
      default: '127.0.0.1:8443',
      pattern: `^${hostAndPort}$`,
    }),
    dev: Type.Boolean({
      description: 'Development: makes keys, a certificate authority and a registry file itself.',
      default: false,
    }),
    public: Type.Object({
      https: texts('HTTPS base addresses clients use; empty: derived from `listen`.'),
      wss: texts('WebSocket addresses clients use; empty: derived from `https`.'),
      peer: text(
        'libp2p TCP address for relays, `/dns4/<host>/tcp/<port>`. With --dev it may be empty: the host of the first HTTPS address and the port of `federation.listen`.',
        { default: '' },
      ),
    }),
    tls: Type.Object({
      mode: Type.Union([Type.Literal('files'), Type.Literal('dev'), Type.Literal('off')], {
        description: '`files`: own certificate; `dev`: made here; `off`: a proxy in front has it.',
        default: 'files',
      }),
      certificate: text('PEM file with the certificate chain, for mode `files`.', { default: '' }),
      key: text('PEM file with the private key, mode 0600, for mode `files`.', { default: '' }),
      authority: text(
        'Folder of the certificate authority for mode `dev`, which several relays may share; empty: tls/ in the data folder.',
        { default: '' },
      ),
    }),
    storage: Type.Object({
      engine: Type.Union([Type.Literal('sqlite'), Type.Literal('postgres')], {
        description: '`sqlite`: a file in the data folder; `postgres`: for several processes.',
        default: 'sqlite',
      }),
      url: text('PostgreSQL database, `postgres://user:password@host:port/database`.', {
        default: '',
        pattern: '^(?:postgres(?:ql)?://\\S+)?$',
      }),
      connections: Type.Integer({
        description: 'Connections of this process to PostgreSQL, at the most.',
        default: 10,
        minimum: 2,
        maximum: 1_000,
      }),
    }),
    bus: Type.Object({
      nats: text(
        'NATS server between the processes of this relay, `nats://` or `tls://user:password@host:port`; empty: there is one process.',
        { default: '', pattern: '^(?:(?:nats|tls)://\\S+)?$' },
      ),
    }),
    operations: Type.Object({
      listen: text('Address of /health, /metrics and /admin/ for operators; empty: none.', {
        default: '',
        pattern: `^(?:${hostAndPort})?$`,
      }),
      tls: Type.Boolean({
        description: 'Whether this address has TLS, with the certificate of `tls`.',
        default: false,
      }),
      adminTokenFile: text(
        'File of mode 0600 with the token of the admin interface, which posthouse init makes; empty: there is no admin interface. `operations.listen` must then be on loopback, or have TLS.',
        { default: '' },
      ),
    }),
    federation: Type.Object({
      listen: text('Address to listen on for other relays; empty: none, the relay stays alone.', {
        default: '0.0.0.0:4201',
        pattern: `^(?:${hostAndPort})?$`,
      }),
      ca: text(
        'PEM file with further certificate authorities of other relays, for private networks.',
        { default: '' },
      ),
      allowPrivate: Type.Boolean({
        description: 'Whether other relays may have private and loopback addresses.',
        default: false,
      }),
      registryGrace: Type.Integer({
        description: 'Seconds that admitted relays stay while the registry cannot be read.',
        default: 21_600,
        minimum: 600,
        maximum: 604_800,
      }),
    }),
    registration: Type.Union(
      [
        Type.Literal('open'),
        Type.Literal('invite'),
        Type.Literal('approval'),
        Type.Literal('list'),
        Type.Literal('closed'),
      ],
      {
        description:
          'Which new accounts are taken: `open` all, `invite` those with an invite code (posthouse invite), `approval` those that the operator approves (posthouse account), `list` those let in before, `closed` none. `open` with --dev. Accounts that are here stay.',
        default: 'invite',
      },
    ),
    host: Type.Object({
      groups: Type.Boolean({
        description: 'Whether the relay hosts groups (module group.host.v1).',
        default: true,
      }),
      channels: Type.Boolean({
        description: 'Whether the relay hosts channels (module channel.host.v1).',
        default: true,
      }),
    }),
    blobs: Type.Object({
      folder: text(
        'Folder for encrypted attachments of accounts at home here, which others download; empty: none are stored. All processes of a relay share one folder. The `data` folder has other files.',
        { default: '' },
      ),
      maxBytes: Type.Integer({
        description: 'Bytes of one attachment, at the most.',
        default: 26_214_400,
        minimum: 4_096,
        maximum: 1_099_511_627_776,
      }),
      accountBytes: Type.Integer({
        description: 'Bytes of all attachments of one account, each in whole blocks of 4,096.',
        default: 268_435_456,
        minimum: 4_096,
        maximum: Number.MAX_SAFE_INTEGER,
      }),
      totalBytes: Type.Integer({
        description:
          'Bytes of the attachments of all accounts together, each in whole blocks of 4,096.',
        default: 8_589_934_592,
        minimum: 4_096,
        maximum: Number.MAX_SAFE_INTEGER,
      }),
      retention: Type.Integer({
        description: 'Seconds for which an attachment is stored.',
        default: 2_592_000,
        minimum: 60,
        maximum: 100_000_000_000,
      }),
    }),
    trustedProxies: texts('Proxies whose X-Forwarded-For counts: addresses or subnets.'),
    policy: Type.Object({
      command: texts(
        'Program, with its arguments, that is asked before a new account, a post or a group is stored: the absolute path first. Empty: none is asked.',
      ),
      onFailure: Type.Union([Type.Literal('refuse'), Type.Literal('allow')], {
        description: 'What becomes of a call if the program gives no valid answer in time.',
        default: 'refuse',
      }),
    }),
    registry: Type.Union([Type.String(), RegistryNodes], {
      description:
        'Registry file (empty: registry.json in the data folder), or the nodes of the chain: `{ "nodes": ["https://..."], "agree": 1 }`. A variable has the same as JSON.',
      default: '',
    }),
    copyBeforeUpgrade: Type.Boolean({
      description:
        'Whether the embedded database is copied in the data folder before a newer relay changes its tables.',
      default: true,
    }),
    web: Type.Union(
      [
        Type.Boolean(),
        Type.Object({
          folder: Type.Optional(Type.String()),
          nodes: Type.Optional(Type.Array(Type.String(), { minItems: 1, maxItems: 16 })),
        }),
      ],
      {
        description:
          'Whether the messenger for browsers is served under /app/; or `{ "folder": "...", "nodes": ["https://..."] }` with another build of it, and the nodes of the chain that pages ask (everyone can read them). true with --dev.',
        default: false,
      },
    ),
    descriptorLifetime: Type.Integer({
      description: 'Seconds a signed descriptor is valid; signed again at half of it.',
      default: 604_800,
      minimum: 60,
      maximum: 31_536_000,
    }),
    log: Type.Union(
      [
        Type.Literal('silent'),
        Type.Literal('error'),
        Type.Literal('warn'),
        Type.Literal('info'),
        Type.Literal('debug'),
      ],
      { description: 'How much is logged to standard error.', default: 'info' },
    ),
    logAddresses: Type.Union([Type.Literal('off'), Type.Literal('hashed'), Type.Literal('full')], {
      description:
        'How addresses are logged: not at all, as a hash by a random key of the day that is in memory alone, or as they are.',
      default: 'hashed',
    }),
    limits: RelayLimits,
  },
  { description: 'Configuration of a Posthouse relay.' },
);
export type RelayConfig = Static<typeof RelayConfig>;
