import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/**
 * A service that locks with Curator alone.
 *
 * `hold ENDPOINT PATH`: acquires the lock, prints "held" and releases it at the end of its input.
 * `count ENDPOINT PATH FILE TIMES`: adds one to the number in a file, each time under the lock.
 */
class CuratorService {
  private static final int TIMEOUT_MS = 10_000;
  private static final int RETRY_MS = 100;

  public static void main(String[] args) throws Exception {
    RetryOneTime retry = new RetryOneTime(RETRY_MS);
    try (CuratorFramework client = CuratorFrameworkFactory.newClient(args[1], TIMEOUT_MS, TIMEOUT_MS, retry)) {
      client.start();
      InterProcessMutex mutex = new InterProcessMutex(client, args[2]);
      if (args[0].equals("hold")) hold(mutex);
      else count(mutex, Path.of(args[3]), Integer.parseInt(args[4]));
    }
  }

  private static void hold(InterProcessMutex mutex) throws Exception {
    mutex.acquire();
    System.out.println("held");
    while (System.in.read() >= 0) {}
    mutex.release();
    System.out.println("released");
  }

  private static void count(InterProcessMutex mutex, Path file, int times) throws Exception {
    System.out.println("counts");
    for (int i = 0; i < times; i++) {
      mutex.acquire();
      int number = Integer.parseInt(Files.readString(file));
      Thread.sleep(2);
      Files.writeString(file, String.valueOf(number + 1));
      mutex.release();
    }
  }
}
