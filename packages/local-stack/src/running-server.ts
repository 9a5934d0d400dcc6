/** How a server's process ended. */
export interface ServerExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A server that answered when it was handed out. It ends with the process that started it, however that one ends. */
export interface RunningServer {
  readonly url: string;
  /** The process that holds the data and the ports, so that a fault test kills the right one. */
  readonly pid: number;
  readonly logFile: string;
  /** Resolves, never rejects, once the process is gone and its data directory may be used again. */
  readonly exited: Promise<ServerExit>;
  /** Shuts down cleanly, by force after a deadline. Safe to call again, or after the server has died. */
  stop(): Promise<void>;
  /** `kill -9`, and waits until the process is gone. */
  kill(): Promise<void>;
}

export interface RunningClickHouse extends RunningServer {
  readonly httpPort: number;
  readonly tcpPort: number;
}

export interface RunningRedis extends RunningServer {
  readonly port: number;
}
