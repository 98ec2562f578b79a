// SPDX-License-Identifier: BSD-2-Clause

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.URL;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;

/** An HTTP server and its clients for callcheck-programs. Ends when it is killed. */
public class Work {
    interface Shape { double area(); }

    record Circle(double r) implements Shape { public double area() { return r * r * 3.14; } }

    record Square(double a) implements Shape { public double area() { return a * a; } }

    static int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

    static byte[] work() {
        TreeMap<String, Shape> map = new TreeMap<>();
        for (int i = 0; i < 200; i++)
            map.put("key" + i * 7919 % 200, i % 2 == 0 ? new Circle(i) : new Square(i));
        List<String> out = map.entrySet().stream().filter(e -> e.getValue().area() > 9)
            .map(e -> e.getKey() + String.format("%.1f", e.getValue().area())).sorted().collect(Collectors.toList());
        return (out.size() + fibonacci(15) + new ArrayList<>(out).toString()).getBytes();
    }

    static synchronized void client(String url) throws Exception {
        try (var in = new URL(url).openStream()) {
            in.readAllBytes();
        }
    }

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", e -> {
            byte[] b = work();
            e.sendResponseHeaders(200, b.length);
            e.getResponseBody().write(b);
            e.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(3));
        server.start();
        String url = "http://127.0.0.1:" + server.getAddress().getPort() + "/";
        for (int i = 0; i < 3; i++)
            new Thread(() -> {
                while (true) {
                    try {
                        client(url);
                    } catch (Exception e) {
                        throw new RuntimeException(e);
                    }
                }
            }).start();
    }
}
