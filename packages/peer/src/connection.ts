import { Agreements } from './agreements.ts';
import type { PeerClock } from './clock.ts';
import { Deadlines, rejectOnAbort } from './deadlines.ts';
import { PeerError } from './errors.ts';
import type { PeerLimits } from './limits.ts';
import { Proposal, Selection } from './multistream.ts';
import type { PeerPools } from './peer-pools.ts';
import { PeerStream, type StreamHost } from './peer-stream.ts';
import type { SecureChannel } from './secure-channel.ts';
import { Slots } from './slots.ts';
import { StallWatch } from './stall-watch.ts';
import { goAwayCode } from './yamux/frame.ts';
import { type SentBytes, YamuxSession } from './yamux/session.ts';
import type { YamuxStream } from './yamux/stream.ts';

/** What the other side proved in the handshake; its descriptor is not verified yet (07 §B3, §B4). */
export interface RemotePeer {
  /** Multihash bytes of the Peer ID; the peer has its key. */
  readonly peerId: Uint8Array;
  /** JSON text, as sent. */
  readonly descriptor: string;
  /** IP address. */
  readonly address: string;
  readonly direction: 'inbound' | 'outbound';
}

/** A protocol that peers may open streams of. */
export interface PeerProtocol<P> {
  /** Streams of one connection at once, opened by the peer; of our own as many. */
  readonly streams: number;
  /**
   * Serves one stream. When it returns, this side of the stream ends; when it throws, the stream is
   * reset.
   */
  serve(stream: PeerStream, connection: PeerConnection<P>): Promise<void>;
}

export interface ConnectionOptions<P> {
  readonly remote: RemotePeer;
  readonly peer: P;
  readonly protocols: ReadonlyMap<string, PeerProtocol<P>>;
  readonly limits: PeerLimits;
  readonly clock: PeerClock;
  readonly pools: PeerPools;
  /** Called once, when the connection is gone. */
  readonly closed: (connection: PeerConnection<P>, reason: PeerError) => void;
  /** A handler of a stream has thrown. */
  readonly failed: (protocol: string, error: unknown) => void;
}

/** Streams of our own at once, of a protocol that this side does not serve. */
const defaultStreams = 16;
/** Frames that are handled in one step: a few hundred microseconds, whatever the frames are. */
const framesOfStep = 64;

/** An admitted connection with a peer. */
export class PeerConnection<P> {
  readonly remote: RemotePeer;
  /** What `admit` returned. */
  readonly peer: P;
  /** Resolves when the connection is gone, with the reason. */
  readonly closed: Promise<PeerError>;
  readonly #options: ConnectionOptions<P>;
  readonly #channel: SecureChannel;
  readonly #session: YamuxSession;
  /** For streams that the peer opened, and for our own. */
  readonly #servedHost: StreamHost;
  readonly #calledHost: StreamHost;
  readonly #resolveClosed: (reason: PeerError) => void;
  /** Aborts with the reason of the end. */
  readonly #gone = new AbortController();
  #endReason: PeerError | undefined;
  /** Set once this or the other side opens no more streams; the connection ends with the last. */
  #drainReason: string | undefined;
  readonly #agreements: Agreements;
  /** Inbound streams by protocol whose stream is open or whose handler runs. */
  readonly #served = new Map<string, number>();
  readonly #serving = new Set<PeerStream>();
  readonly #slots = new Map<string, Slots>();
  /** What to do when a stream has closed. */
  readonly #afterwards = new Map<PeerStream, () => void>();
  readonly #negotiating: Deadlines<YamuxStream>;
  readonly #lingering: Deadlines<PeerStream>;
  readonly #stalls = new StallWatch();
  #timer: Disposable | undefined;

  constructor(channel: SecureChannel, options: ConnectionOptions<P>) {
    const { remote, peer, limits, clock, pools } = options;
    this.remote = remote;
    this.peer = peer;
    this.#options = options;
    this.#channel = channel;
    const { promise, resolve } = Promise.withResolvers<PeerError>();
    this.closed = promise;
    this.#resolveClosed = resolve;
    const parts = {
      limits,
      closed: (stream: PeerStream) => this.#streamClosed(stream),
    };
    this.#agreements = new Agreements(clock, limits.negotiationTime);
    this.#servedHost = { ...pools.served, ...parts };
    this.#calledHost = { ...pools.called, ...parts, largeStreams: pools.largeStreams };
    this.#negotiating = new Deadlines(clock, limits.negotiationTime, (one) => one.reset());
    this.#lingering = new Deadlines(clock, limits.lingerTime, (one) => {
      // What is still being sent is watched by the check of stalled streams.
      if (one.isSending) this.#lingering.add(one);
      else one.reset();
    });
    this.#session = new YamuxSession({
      client: remote.direction === 'outbound',
      output: this.#output(),
      controlFrames: limits.controlFrames,
      accept: (stream) => this.#accept(stream),
      goneAway: () => this.#endWhenIdle('the peer opens no more streams'),
      idle: () => {
        if (this.#drainReason !== undefined) this.close(this.#drainReason);
      },
    });
    this.#timer = clock.after(limits.pingInterval, () => this.#check());
  }

  /**
   * Begins to read; streams are served from now on.
   *
   * @param rest bytes that came with the agreement on Yamux
   */
  start(rest: Uint8Array): void {
    const events = {
      data: (bytes: Buffer) => this.#receive(bytes),
      drain: () => this.#session.flush(),
      closed: (reason: PeerError) => this.#finish(reason),
    };
    this.#channel.handOver(events, rest);
  }

  /** Whether streams can be opened; if not, another connection is needed. */
  get isOpen(): boolean {
    return this.#endReason === undefined && this.#session.canOpen;
  }

  /** Bytes held for this peer, over all its connections. */
  get heldBytes(): number {
    const { served, called } = this.#options.pools;
    const pools = [served.inbound, served.outbound, called.inbound, called.outbound];
    return pools.reduce((sum, pool) => sum + pool.used, 0);
  }

  /** Streams of both sides that are open now. */
  get streams(): number {
    return this.#session.streams.size;
  }

  /**
   * Opens a stream of a protocol. The first stream of a protocol waits for the peer's agreement;
   * later ones are sent at once, and their reads fail if the peer refuses. Waits while as many
   * streams of the protocol are open as this side would serve, or too many bytes are held.
   *
   * @param options when the signal aborts, also later, the stream is reset with its reason
   * @throws PeerError `not_supported`, `closed`, `reset` or `timeout`; the signal's reason
   */
  async openStream(protocol: string, { signal }: { signal: AbortSignal }): Promise<PeerStream> {
    signal.throwIfAborted();
    const slots = this.#slotsOf(protocol);
    if (!slots.tryTake()) await slots.take(this.#orGone(signal));
    try {
      const { outbound } = this.#calledHost;
      if (outbound.isFull) await outbound.acquire(0, this.#orGone(signal));
      const first = this.#agreements.pending(protocol);
      if (first !== undefined) await rejectOnAbort(this.#orGone(signal), first);
      return await this.#openWithSlot(protocol, slots, signal);
    } catch (error) {
      slots.give();
      throw error;
    }
  }

  /** Ends the connection at once: streams are reset. */
  close(why: string): void {
    this.abort(new PeerError('closed', why));
  }

  /** Ends the connection at once, with an error for pending reads and writes. */
  abort(reason: PeerError): void {
    this.#end(reason);
  }

  /**
   * Opens and accepts no more streams, and ends the connection when those under way have ended, or
   * when the signal aborts.
   */
  async drain(why: string, signal: AbortSignal): Promise<void> {
    this.#session.goAway();
    this.#endWhenIdle(why);
    try {
      await rejectOnAbort(signal, this.closed);
    } catch {
      // The grace is over.
      this.close(why);
      await this.closed;
    }
  }

  async #openWithSlot(protocol: string, slots: Slots, signal: AbortSignal): Promise<PeerStream> {
    signal.throwIfAborted();
    const { limits } = this.#options;
    const yamux = this.#session.open();
    if (this.#session.isExhausted) this.#endWhenIdle('the stream IDs are used up');
    const stream = new PeerStream(
      protocol,
      yamux,
      this.#calledHost,
      new Proposal(protocol, limits),
    );
    const abort = () => stream.reset(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    let opened = false;
    this.#afterwards.set(stream, () => {
      signal.removeEventListener('abort', abort);
      if (opened) slots.give();
    });
    await this.#agreements.require(stream);
    if (stream.isClosed) throw stream.signal.reason ?? new PeerError('reset', 'reset at once');
    opened = true;
    return stream;
  }

  #slotsOf(protocol: string): Slots {
    let slots = this.#slots.get(protocol);
    if (slots === undefined) {
      slots = new Slots(this.#options.protocols.get(protocol)?.streams ?? defaultStreams);
      this.#slots.set(protocol, slots);
    }
    return slots;
  }

  #orGone(signal: AbortSignal): AbortSignal {
    return AbortSignal.any([signal, this.#gone.signal]);
  }

  // Streams that the peer opens.

  #accept(yamux: YamuxStream): boolean {
    const { limits, protocols } = this.#options;
    if (this.#negotiating.size >= limits.negotiatingStreams) return false;
    const selection = new Selection((protocol) => protocols.has(protocol), limits);
    yamux.events = {
      data: (piece) => this.#select(yamux, selection, piece),
      end: () => yamux.reset(),
      closed: (_, dropped) => {
        this.#negotiating.delete(yamux);
        this.#servedHost.outbound.release(dropped);
      },
    };
    this.#negotiating.add(yamux);
    return true;
  }

  #select(yamux: YamuxStream, selection: Selection, piece: Uint8Array): void {
    try {
      const { reply, agreed } = selection.receive(piece);
      // What follows the proposal is credited when it is read.
      yamux.credit(piece.length - (agreed?.rest.length ?? 0));
      const served = agreed === undefined ? 0 : (this.#served.get(agreed.protocol) ?? 0);
      const protocol = this.#options.protocols.get(agreed?.protocol ?? '');
      if (protocol !== undefined && served >= protocol.streams) {
        yamux.reset();
        return;
      }
      this.#servedHost.outbound.add(reply.length);
      yamux.send(reply);
      if (agreed === undefined || protocol === undefined) return;
      this.#negotiating.delete(yamux);
      const stream = new PeerStream(agreed.protocol, yamux, this.#servedHost);
      this.#served.set(agreed.protocol, served + 1);
      stream.deliver(agreed.rest);
      void this.#serve(stream, protocol);
    } catch (error) {
      if (!(error instanceof PeerError)) throw error;
      yamux.reset();
    }
  }

  async #serve(stream: PeerStream, protocol: PeerProtocol<P>): Promise<void> {
    const leave = () => {
      if (this.#serving.has(stream) || !stream.isClosed) return;
      this.#afterwards.delete(stream);
      this.#lingering.delete(stream);
      this.#served.set(stream.protocol, (this.#served.get(stream.protocol) ?? 1) - 1);
    };
    this.#serving.add(stream);
    this.#afterwards.set(stream, leave);
    try {
      const { outbound } = this.#servedHost;
      // Another answer would only wait.
      if (outbound.isFull) await outbound.acquire(0, this.#orGone(stream.signal));
      if (!stream.isClosed) await protocol.serve(stream, this);
      stream.end();
    } catch (error) {
      stream.reset(error);
      this.#options.failed(stream.protocol, error);
    }
    stream.discard();
    this.#serving.delete(stream);
    if (!stream.isClosed) this.#lingering.add(stream);
    leave();
  }

  #streamClosed(stream: PeerStream): void {
    const work = this.#afterwards.get(stream);
    if (!this.#serving.has(stream)) this.#afterwards.delete(stream);
    work?.();
  }

  // The channel.

  #output() {
    const channel = this.#channel;
    const { served, called } = this.#options.pools;
    return {
      get isBlocked() {
        return channel.isBlocked;
      },
      write: (plaintext: Buffer, { own, peer }: SentBytes) => {
        const sent = () => {
          called.outbound.release(own);
          served.outbound.release(peer);
        };
        channel.write(plaintext, own + peer === 0 ? undefined : sent);
      },
    };
  }

  #receive(bytes: Buffer): number {
    try {
      return this.#session.receive(bytes, framesOfStep);
    } catch (error) {
      if (!(error instanceof PeerError)) throw error;
      this.#end(error, goAwayCode.protocolError);
      return bytes.length;
    }
  }

  /** Pings, and resets streams that have stalled since the last time. */
  #check(): void {
    const { clock, limits } = this.#options;
    if (!this.#session.ping()) {
      this.#end(new PeerError('timeout', 'the peer does not answer pings'));
      return;
    }
    this.#stalls.check(this.#afterwards.keys());
    this.#timer = clock.after(limits.pingInterval, () => this.#check());
  }

  #endWhenIdle(why: string): void {
    this.#drainReason ??= why;
    if (this.#session.streams.size === 0) this.close(why);
  }

  #end(reason: PeerError, code: number = goAwayCode.normal): void {
    if (this.#endReason !== undefined) return;
    this.#endReason = reason;
    this.#session.goAway(code);
    this.#session.flush();
    this.#settle(reason);
    // A peer that reads nothing would not take the rest.
    if (reason.code === 'limit' || reason.code === 'timeout') this.#channel.destroy(reason);
    else this.#channel.end(reason);
    const { clock, limits } = this.#options;
    this.#timer = clock.after(limits.lingerTime, () => this.#channel.destroy(reason));
  }

  #finish(reason: PeerError): void {
    this.#endReason ??= reason;
    this.#settle(this.#endReason);
    this.#timer?.[Symbol.dispose]();
    this.#resolveClosed(this.#endReason);
    this.#options.closed(this, this.#endReason);
  }

  /** Resets all streams and ends all waiting. */
  #settle(reason: PeerError): void {
    this.#timer?.[Symbol.dispose]();
    this.#gone.abort(reason);
    for (const stream of [...this.#afterwards.keys()]) stream.reset(reason);
    this.#session.close();
    this.#negotiating.clear();
    this.#lingering.clear();
    this.#stalls.clear();
  }
}
