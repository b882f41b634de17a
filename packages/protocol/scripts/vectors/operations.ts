/**
 * The operations that the vectors ask for, by name, on our implementation. The maker fills in what
 * they give, the tests hold them to it; what each does is said in `vectors/README.md`.
 */
import {
  type AccountDeviceState,
  accountAuthInput,
  base64urlPattern,
  type ContactGrant,
  type ContactInvite,
  type ContentReference,
  canonicalJson,
  checkAccountId,
  checkContentReference,
  checkEncryptedPayload,
  checkEnvelope,
  checkEnvelopeCertificate,
  checkRouteDraft,
  checkSchema,
  clientSecretCommitment,
  contentAad,
  type DeviceCertificate,
  decodeBase64url,
  decodeUtf8,
  decodeVarint,
  deriveAccountId,
  deriveChannelId,
  deriveDeviceId,
  deriveEpochApplicationSecret,
  deriveGroupId,
  deriveGroupMessageKey,
  deriveRelayId,
  descriptorAddresses,
  descriptorSignatures,
  deviceAuthInput,
  deviceCertificateSignatures,
  deviceStateSignatures,
  diagnoseEnvelope,
  encodeBase64url,
  encodeVarint,
  envelopeSignatures,
  fromHex,
  type GroupSecretBox,
  groupMessageAad,
  groupSignatures,
  hex,
  inviteSignatures,
  isOnlyWhitespace,
  type JsonObject,
  type JsonValue,
  keyBoxInfo,
  type MessageEnvelope,
  type MessageKeyBox,
  messageAad,
  type Network,
  openClientSecret,
  openContent,
  openKeyBox,
  openMessage,
  openRelaySecret,
  ProtocolError,
  parseJson,
  parseNetworkContext,
  profileSignatures,
  type RelayEntry,
  RelayId,
  relayOrigin,
  routeDraftSignatures,
  routeSignatures,
  type SignatureCheck,
  scriptHash,
  utf8,
  utf8Length,
  validGrantDevices,
  verifyChannelDescriptor,
  verifyDescriptor,
  verifyDeviceCertificate,
  verifyDeviceState,
  verifyGrant,
  verifyInvite,
  verifyProfile,
  verifyRoute,
  verifySignatures,
} from '../../src/index.ts';

type Operation = (network: Network, input: JsonObject) => JsonObject;

/** An operation whose input the vector files give in the right shape. */
function operation<I>(run: (network: Network, input: I) => JsonObject): Operation {
  return (network, input) => run(network, input as unknown as I);
}

/** Bytes of a text that a vector gives as canonical base64url. */
function bytes(text: string): Uint8Array {
  const decoded = decodeBase64url(text);
  if (decoded === undefined) throw new ProtocolError('bad_request', 'not canonical base64url');
  return decoded;
}

/** What opened, or the error of what did not. */
function opened(value: Uint8Array | undefined): Uint8Array {
  if (value === undefined) throw new ProtocolError('bad_request', 'does not open');
  return value;
}

/** Signatures as data: who signed which text, so that anybody can verify them apart from us. */
function signed(network: Network, checks: readonly SignatureCheck[]): JsonValue {
  return checks.map(({ scheme, publicKey, message, signature }) => ({
    scheme,
    public_key: encodeBase64url(publicKey),
    text: decodeUtf8(message),
    sha256: hex(network.primitives.sha256(message)),
    signature: encodeBase64url(signature),
  }));
}

function input(network: Network, message: Uint8Array): JsonObject {
  return { text: decodeUtf8(message), sha256: hex(network.primitives.sha256(message)) };
}

const encoding: Record<string, Operation> = {
  'json.parse': operation<{ text?: string; hex?: string }>((_network, given) => {
    const text = given.text ?? decodeUtf8(fromHex(given.hex ?? ''));
    return { canonical: canonicalJson(parseJson(text)) };
  }),
  'rpc.fault': operation<{ text: string }>((_network, { text }) => ({ ...diagnoseEnvelope(text) })),
  'base64url.decode': operation<{ text: string }>((_network, { text }) => ({
    hex: hex(bytes(text)),
  })),
  'base64url.fixed': operation<{ text: string; prefix: string; bytes: number }>(
    (_network, { text, prefix, bytes: length }) => {
      if (!new RegExp(base64urlPattern(length, prefix)).test(text)) {
        throw new ProtocolError('bad_request', 'not this value');
      }
      return { hex: hex(bytes(text.slice(prefix.length))) };
    },
  ),
  'varint.decode': operation<{ hex: string }>((_network, given) => {
    const read = decodeVarint(fromHex(given.hex));
    if (typeof read === 'string') return { error: read };
    return {
      value: read.value.toString(),
      length: read.length,
      again: hex(encodeVarint(read.value)),
    };
  }),
  'text.measure': operation<{ text: string }>((_network, { text }) => ({
    utf8_bytes: utf8Length(text),
    only_whitespace: isOnlyWhitespace(text),
  })),
};

const crypto: Record<string, Operation> = {
  'signature.verify': operation<{
    scheme: SignatureCheck['scheme'];
    public_key: string;
    message_hex: string;
    signature: string;
  }>((network, { scheme, public_key, message_hex, signature }) => ({
    valid: network.primitives[scheme].verify(
      bytes(public_key),
      fromHex(message_hex),
      bytes(signature),
    ),
  })),
  'signature.make': operation<{
    scheme: SignatureCheck['scheme'];
    private_key: string;
    message_hex: string;
  }>((network, { scheme, private_key, message_hex }) => {
    const { publicKey, sign } = network.primitives[scheme];
    return {
      public_key: encodeBase64url(publicKey(bytes(private_key))),
      signature: encodeBase64url(sign(bytes(private_key), fromHex(message_hex))),
    };
  }),
  'x25519.shared': operation<{ private_key: string; public_key: string }>((network, keys) => {
    const { x25519 } = network.primitives;
    const shared = x25519.shared(bytes(keys.private_key), bytes(keys.public_key));
    return shared === undefined ? { error: 'all_zero' } : { shared: encodeBase64url(shared) };
  }),
};

const network: Record<string, Operation> = {
  'network.context': operation<{ text: string }>((_network, { text }) => ({
    ...(parseNetworkContext(text) ?? { error: 'invalid' }),
  })),
  'network.bind': operation<{ object: JsonObject; omit?: string[] }>((net, { object, omit }) => {
    const message = net.bytes(object, omit);
    return { ...input(net, message), hash: net.hash(object, omit) };
  }),
  'network.names': operation<{ type: string; salt: string }>((net, { type, salt }) => ({
    type: net.type(type),
    salt: hex(net.salt(salt)),
    path_prefix: net.pathPrefix,
    session_header: net.sessionHeader,
  })),
  'account.derive': operation<{ public_key: string }>((net, { public_key }) => ({
    script_hash: hex(scriptHash(net.primitives, bytes(public_key))),
    account: deriveAccountId(net, public_key),
    relay_id: deriveRelayId(net, public_key),
  })),
  'account.check': operation<{ account: string }>((net, { account }) => {
    checkAccountId(net, account);
    return {};
  }),
  'relay_id.check': operation<{ relay_id: string }>((_network, { relay_id }) => {
    checkSchema(RelayId, relay_id);
    return {};
  }),
  'origin.derive': operation<{ endpoint: string }>((_network, { endpoint }) => ({
    origin: relayOrigin(endpoint),
  })),
};

const identity: Record<string, Operation> = {
  'certificate.verify': operation<{ certificate: unknown }>((net, { certificate }) => {
    verifyDeviceCertificate(net, certificate);
    return {
      device_id: deriveDeviceId(net, certificate),
      signed: signed(net, deviceCertificateSignatures(net, certificate)),
    };
  }),
  'device_state.verify': operation<{ state: unknown }>((net, { state }) => {
    verifyDeviceState(net, state);
    return {
      device_ids: state.certificates.map((certificate) => deriveDeviceId(net, certificate)),
      hash: net.hash(state),
      signed: signed(net, deviceStateSignatures(net, state)),
    };
  }),
  'profile.verify': operation<{ profile: unknown; certificate: DeviceCertificate }>(
    (net, { profile, certificate }) => {
      verifyDeviceCertificate(net, certificate);
      verifyProfile(net, profile, certificate);
      return { signed: signed(net, profileSignatures(net, profile, certificate)) };
    },
  ),
  'route_draft.verify': operation<{ route: unknown }>((net, { route }) => {
    checkRouteDraft(net, route);
    verifySignatures(net.primitives, routeDraftSignatures(net, route), 'route');
    return { signed: signed(net, routeDraftSignatures(net, route)) };
  }),
  'route.verify': operation<{ route: unknown; relay_public_key: string }>(
    (net, { route, relay_public_key }) => {
      verifyRoute(net, route, { relayPublicKey: relay_public_key });
      return { signed: signed(net, routeSignatures(net, route, relay_public_key)) };
    },
  ),
  'descriptor.verify': operation<{ descriptor: unknown; entry: RelayEntry; now: number }>(
    (net, { descriptor, entry, now }) => {
      verifyDescriptor(net, descriptor, { entry, now });
      return {
        ...descriptorAddresses(descriptor),
        signed: signed(net, descriptorSignatures(net, descriptor)),
      };
    },
  ),
  'auth.device_input': operation<Parameters<typeof deviceAuthInput>[1]>((net, facts) =>
    input(net, deviceAuthInput(net, facts)),
  ),
  'auth.account_input': operation<Parameters<typeof accountAuthInput>[1]>((net, facts) =>
    input(net, accountAuthInput(net, facts)),
  ),
};

interface Devices {
  state: AccountDeviceState;
  now: number;
}

const contacts: Record<string, Operation> = {
  'grant.verify': operation<{ grant: unknown; grantor?: string; grantee?: string } & Devices>(
    (net, { grant, ...expected }) => {
      verifyDeviceState(net, expected.state);
      verifyGrant(net, grant, expected);
      const { signatures: _signatures, ...body } = grant as ContactGrant;
      return { devices: validGrantDevices(net, grant, expected), ...input(net, net.bytes(body)) };
    },
  ),
  'invite.verify': operation<{ invite: unknown; inviter?: string } & Devices>(
    (net, { invite, ...expected }) => {
      verifyDeviceState(net, expected.state);
      verifyInvite(net, invite, expected);
      return { signed: signed(net, inviteSignatures(net, invite as ContactInvite, expected)) };
    },
  ),
};

const messages: Record<string, Operation> = {
  'payload.check': operation<{ payload?: unknown }>((_network, { payload }) => {
    checkEncryptedPayload(payload);
    return {};
  }),
  'envelope.verify': operation<{ envelope: unknown; certificate: DeviceCertificate }>(
    (net, { envelope, certificate }) => {
      checkEnvelope(net, envelope);
      verifyDeviceCertificate(net, certificate);
      checkEnvelopeCertificate(net, envelope, certificate);
      const checks = envelopeSignatures(net, envelope, certificate);
      verifySignatures(net.primitives, checks, 'envelope');
      return { aad: decodeUtf8(messageAad(net, envelope)), signed: signed(net, checks) };
    },
  ),
  'key_box.open': operation<{
    envelope: MessageEnvelope;
    account: string;
    key_box: MessageKeyBox;
    encryption_private_key: string;
  }>((net, { envelope, account, key_box: box, encryption_private_key }) => {
    const encryptionPrivateKey = bytes(encryption_private_key);
    const context = { envelope, account, deviceId: box.device_id, enc: box.enc };
    const key = opened(openKeyBox(net, { envelope, account, box, encryptionPrivateKey }));
    return { info: decodeUtf8(keyBoxInfo(net, context)), content_key: encodeBase64url(key) };
  }),
  'message.open': operation<{
    envelope: MessageEnvelope;
    key_box: MessageKeyBox;
    certificate: DeviceCertificate;
    account: string;
    device_id: string;
    encryption_private_key: string;
  }>((net, { key_box: keyBox, device_id: deviceId, encryption_private_key, ...rest }) => {
    const encryptionPrivateKey = bytes(encryption_private_key);
    const plaintext = openMessage(net, { ...rest, keyBox, deviceId, encryptionPrivateKey });
    return { plaintext: decodeUtf8(plaintext) };
  }),
  'content.open': operation<{ reference: ContentReference; body_hex: string }>(
    (net, { reference, body_hex }) => {
      checkContentReference(reference);
      const plaintext = opened(openContent(net, reference, fromHex(body_hex)));
      return { aad: decodeUtf8(contentAad(net, reference)), plaintext_hex: hex(plaintext) };
    },
  ),
};

const hosted: Record<string, Operation> = {
  'group.id': operation<Parameters<typeof deriveGroupId>[1]>((net, identity) => ({
    group_id: deriveGroupId(net, identity),
  })),
  'group.commitment': operation<{ group_id: string; secret: string }>(
    (net, { group_id, secret }) => ({
      commitment: clientSecretCommitment(net, group_id, bytes(secret)),
    }),
  ),
  'group.client_box.open': operation<{
    context: Parameters<typeof openClientSecret>[1];
    box: GroupSecretBox;
    private_key: string;
  }>((net, { context, box, private_key }) => {
    const privateKey = bytes(private_key);
    return { secret: encodeBase64url(opened(openClientSecret(net, context, { box, privateKey }))) };
  }),
  'group.relay_box.open': operation<{
    context: Parameters<typeof openRelaySecret>[1];
    box: GroupSecretBox;
    private_key: string;
  }>((net, { context, box, private_key }) => {
    const privateKey = bytes(private_key);
    return { secret: encodeBase64url(opened(openRelaySecret(net, context, { box, privateKey }))) };
  }),
  'group.message_key': operation<{
    group_id: string;
    epoch: number;
    client_secret: string;
    relay_secret: string;
    message: Parameters<typeof groupMessageAad>[1];
  }>((net, { group_id, epoch, client_secret, relay_secret, message }) => {
    const clientSecret = bytes(client_secret);
    const applicationSecret = deriveEpochApplicationSecret(net, {
      group_id,
      epoch,
      client_secret_commitment: clientSecretCommitment(net, group_id, clientSecret),
      clientSecret,
      relaySecret: bytes(relay_secret),
    });
    return {
      application_secret: encodeBase64url(applicationSecret),
      aad: decodeUtf8(groupMessageAad(net, message)),
      message_key: encodeBase64url(deriveGroupMessageKey(net, applicationSecret, message)),
    };
  }),
  'group.object.verify': operation<{
    object: JsonObject & { device_signature: string };
    certificate: DeviceCertificate;
  }>((net, { object, certificate }) => {
    const checks = groupSignatures(net, object, certificate);
    verifySignatures(net.primitives, checks, 'object');
    return { management_hash: net.hash(object), signed: signed(net, checks) };
  }),
  'channel.id': operation<Parameters<typeof deriveChannelId>[1]>((net, identity) => ({
    channel_id: deriveChannelId(net, identity),
  })),
  'channel.descriptor.verify': operation<{
    descriptor: unknown;
    channel_id: string;
    relay_id: string;
    certificate: DeviceCertificate;
  }>((net, { descriptor, channel_id: channelId, relay_id: relayId, certificate }) => {
    verifyDeviceCertificate(net, certificate);
    const known = { channelId, relayId, certificate };
    const { revision, status } = verifyChannelDescriptor(net, descriptor, known);
    return { revision, status };
  }),
};

/** Every operation by its name. */
export const operations: Readonly<Record<string, Operation>> = {
  ...encoding,
  ...crypto,
  ...network,
  ...identity,
  ...contacts,
  ...messages,
  ...hosted,
};

/**
 * Runs an operation: what it gives, or `{ error }` with the code of the error catalogue. Texts that
 * are not JSON are `bad_request`, as over HTTP; addresses that are none are `invalid`.
 *
 * @throws Error for an operation that does not exist
 */
export function run(name: string, net: Network, given: JsonObject): JsonObject {
  const found = Object.hasOwn(operations, name) ? operations[name] : undefined;
  if (found === undefined) throw new Error(`there is no operation ${name}`);
  try {
    // The outcome as JSON has it: without members that are undefined.
    return JSON.parse(JSON.stringify(found(net, given))) as JsonObject;
  } catch (error) {
    if (error instanceof ProtocolError) return { error: error.code };
    if (error instanceof Error && error.name === 'JsonError') return { error: 'bad_request' };
    if (error instanceof TypeError && name === 'origin.derive') return { error: 'invalid' };
    throw error;
  }
}

/** UTF-8 of a text in hex, for inputs that are bytes. */
export function hexOf(text: string): string {
  return hex(utf8(text));
}
